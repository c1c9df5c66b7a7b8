"""Saved coefficients evaluated on tasks: what is computed, kept, refused and said about it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.agent.evaluator import AgentEvaluator, Outcome
from nograd.cli import main
from nograd.errors import ConfigError, RunError
from nograd.report.heldout import arm_contrasts, arm_rates, check_distinct, rates_at
from nograd.run import build_agent, layout
from nograd.run.config_source import load_config
from nograd.run.evaluate import evaluate, parse_generations
from nograd.run.evaluations import COLUMNS, load_evaluations
from nograd.run.load import load_run
from nograd.run.lock import locked
from nograd.run.rebuild import on_tasks, rebuild
from nograd.run.start import run_config
from nograd.tasks.registry import family
from tiny_models import save_tiny_chat

GENERATIONS = 2
TASKS = "in_house"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms tuned for two generations with a model that answers nonsense."""
    root = tmp_path_factory.mktemp("runs")
    model = save_tiny_chat(root / "model", max_position_embeddings=4096)
    for arm in ("uniform", "hard"):
        choices = [
            f"model.spec={model}",
            f"search.arm={arm}",
            f"search.generations={GENERATIONS}",
            "tasks.batch=1",
            "reward.shaping=1.0",
            "model.dtype=float32",
            "execution.threads=1",
            "subspace.dim=8",
            "agent.token_limits.planner=2",
            "agent.token_limits.selector=2",
            "agent.token_limits.caller=2",
            "agent.token_limits.synthesizer=2",
        ]
        run_config(load_config(None, choices), root / arm)
    return root


@pytest.fixture
def roots(made: Path, tmp_path: Path) -> dict[str, Path]:
    """The two runs by arm, to be written to."""
    return {arm: shutil.copytree(made / arm, tmp_path / arm) for arm in ("uniform", "hard")}


@pytest.fixture
def evaluated_thetas(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """All coefficients that reach an evaluator."""
    seen: list[np.ndarray] = []
    real = AgentEvaluator.outcomes

    def outcomes(self: AgentEvaluator, tasks: Any, thetas: Any) -> list[Outcome]:
        seen.extend(thetas)
        return real(self, tasks, thetas)

    monkeypatch.setattr(AgentEvaluator, "outcomes", outcomes)
    return seen


@given(st.integers(0, 60), st.data())
@settings(deadline=None)
def test_generations_are_numbers_and_ranges(done: int, data: st.DataObject) -> None:
    number = st.integers(0, done)
    ranges = data.draw(st.lists(st.tuples(number, number).map(sorted), min_size=1, max_size=4))
    text = ",".join(f"{a}-{b}" if a != b else str(a) for a, b in ranges)
    expected = {0} | {g for a, b in ranges for g in range(a, b + 1)}
    assert parse_generations(text, done) == tuple(sorted(expected))
    assert parse_generations("all", done) == tuple(range(done + 1))
    assert parse_generations("last", done) == tuple(sorted({0, done}))


@pytest.mark.parametrize("text", ["", "first", "3-1", "1,,2", "-1", "1.5", "0-2-3", "1-"])
def test_other_generations_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not understood; write all, last, 28-30"):
        parse_generations(text, 5)


def test_a_generation_that_the_run_lacks_is_refused(roots: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match=r"hard: generations = '1-3' was asked for, but the run has only 2"):
        evaluate([load_run(roots["hard"])], TASKS, "1-3")


def sha256_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""


def test_many_at_once_give_what_one_at_a_time_gives(roots: dict[str, Path]) -> None:
    runs = [load_run(root) for root in roots.values()]
    done = evaluate(runs, TASKS, "all")
    tasks = family(TASKS)
    for each in done:
        assert tuple(each.records) == (0, 1, 2)
        for generation, record in each.records.items():
            judge = on_tasks(rebuild(each.run), each.run.config, tasks)
            (one,) = judge.outcomes(tasks.tasks, each.run.theta[generation][None])
            assert record.success == one.evaluation.success
            assert record.reward == one.evaluation.reward
            assert record.checkpoint == sha256_of(layout.checkpoint(each.run.path, generation - 1))
            assert [row["answer"] for row in record.outcomes] == [row["answer"] for row in one.records]
            assert [row["task"] for row in record.outcomes] == [task.id for task in tasks.tasks]
    answers = {tuple(row["answer"] for row in r.outcomes) for each in done for r in each.records.values()}
    assert len(answers) > 1  # the coefficients do something


def test_nothing_is_computed_twice(roots: dict[str, Path], evaluated_thetas: list[np.ndarray]) -> None:
    runs = [load_run(root) for root in roots.values()]
    evaluate(runs, TASKS, "last")
    assert len(evaluated_thetas) == 3  # the untouched model only once
    told: list[int] = []
    evaluate(runs, TASKS, "last", on_evaluation=lambda *news: told.append(news[1].generation))
    assert len(evaluated_thetas) == 3
    assert not told
    evaluate(runs, TASKS, "all", on_evaluation=lambda *news: told.append(news[1].generation))
    assert told == [1, 1]
    assert len(evaluated_thetas) == 5


def test_an_interrupted_evaluation_ends_in_the_same_bytes(roots: dict[str, Path], tmp_path: Path) -> None:
    whole = load_run(shutil.copytree(roots["hard"], tmp_path / "whole"))
    evaluate([whole], TASKS, "all")
    run = load_run(roots["hard"])

    def stop(*_news: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate([run], TASKS, "1", on_evaluation=stop)
    assert list(load_evaluations(run.path)["generation"]) == [0]
    evaluate([run], TASKS, "all")
    assert layout.evaluations(run.path, TASKS).read_bytes() == layout.evaluations(whole.path, TASKS).read_bytes()


def test_one_engine_for_all_runs_with_the_same_model(
    roots: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = []
    real = build_agent.load_model

    def load(*arguments: Any, **options: Any) -> Any:
        loads.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(build_agent, "load_model", load)
    monkeypatch.setattr(build_agent, "_NEWEST", {})
    evaluate([load_run(root) for root in roots.values()], TASKS, "last")
    assert len(loads) == 1


def test_a_model_that_changed_on_disk_is_loaded_anew(tmp_path: Path) -> None:
    config = load_config(None, [f"model.spec={tmp_path}", "subspace.dim=8", "model.dtype=float32"])
    facts = []
    for spread in (0.2, 0.2, 0.3):
        if not facts or spread != 0.2:
            save_tiny_chat(tmp_path, initializer_range=spread)
        facts.append(build_agent.build_agent(config).facts["fingerprint"])
    assert facts[0] == facts[1] != facts[2]


def test_seeds_share_an_engine_unless_the_subspace_is_random(made: Path) -> None:
    def spec(seed: int, *choices: str) -> build_agent.EngineSpec:
        return build_agent.engine_spec(load_config(None, [f"model.spec={made / 'model'}", f"seed={seed}", *choices]), 4)

    assert spec(1) == spec(2)
    assert spec(1) != spec(1, "subspace.dim=8")
    for choice in ("subspace.binding=shuffled", "subspace.basis=random", "subspace.basis=matched"):
        assert spec(1, choice) == spec(1, choice)
        assert spec(1, choice) != spec(2, choice)


def changed(line: bytes, key: str, value: object) -> bytes:
    return json.dumps(json.loads(line) | {key: value}).encode()


@pytest.mark.parametrize(
    ("line", "key", "value", "message"),
    [
        (0, "tasks", "0" * 64, "was made with other tasks"),
        (0, "fingerprint", "0" * 64, "was made with other fingerprint"),
        (0, "config_hash", "0" * 64, "was made with other config_hash"),
        (2, "checkpoint", "0" * 64, "was made with other coefficients"),
        (2, "generation", 7, "was made with other coefficients"),
        (2, "generation", -1, "cannot be read"),
        (2, "surprise", 1, "cannot be read"),
        (0, "surprise", 1, "cannot be read"),
    ],
)
def test_results_of_something_else_are_refused(
    roots: dict[str, Path], line: int, key: str, value: object, message: str
) -> None:
    run = load_run(roots["uniform"])
    evaluate([run], TASKS, "last")
    file = layout.evaluations(run.path, TASKS)
    lines = file.read_bytes().splitlines()
    lines[line] = changed(lines[line], key, value)
    file.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(RunError, match=message):
        evaluate([run], TASKS, "last")
    if key in ("config_hash", "checkpoint", "generation", "surprise"):  # the others need the model and the tasks
        with pytest.raises(RunError, match="delete it to evaluate again"):
            load_evaluations(run.path)


def test_torn_results_are_refused(roots: dict[str, Path]) -> None:
    run = load_run(roots["uniform"])
    evaluate([run], TASKS, "last")
    file = layout.evaluations(run.path, TASKS)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(RunError, match=r"cannot be read .* delete it to evaluate again"):
        evaluate([run], TASKS, "last")


def test_two_evaluations_of_a_run_do_not_meet(roots: dict[str, Path]) -> None:
    folder = layout.evaluations(roots["hard"], TASKS).parent
    folder.mkdir()
    with locked(folder), pytest.raises(RunError, match="in use"):
        evaluate([load_run(roots["hard"])], TASKS)


def test_runs_of_other_evaluators_are_refused(tmp_path: Path) -> None:
    run_config(load_config(None, ["evaluator=synthetic", "search.generations=1"]), tmp_path)
    with pytest.raises(ConfigError, match="'synthetic', which has no language model"):
        evaluate([load_run(tmp_path)], TASKS)


def test_the_table_of_all_evaluations(roots: dict[str, Path], tmp_path: Path) -> None:
    runs = [load_run(root) for root in roots.values()]
    assert load_evaluations(tmp_path).empty
    done = evaluate(runs, TASKS, "all")
    table = load_evaluations([tmp_path, roots["hard"]])
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == 6
    record = done[0].records[1]
    row = table[(table["arm"] == "uniform") & (table["generation"] == 1)].iloc[0]
    assert row["success"] == record.success
    assert row["caller_accuracy"] == record.metrics["call_ok"]
    assert np.isnan(row["relay"]) == (record.metrics["call_ok"] == 0)
    assert load_evaluations(tmp_path, "bfcl").empty


def rates(values: dict[str, list[float]]) -> pd.DataFrame:
    """A table as of `rates_at`, by arm and seed."""
    return pd.DataFrame(
        {"arm": arm, "seed": seed, "success": v, "caller_accuracy": v / 2, "relay": 1.0, "tool_accuracy": v}
        for arm, by_seed in values.items()
        for seed, v in enumerate(by_seed)
    )


def test_rates_and_contrasts_are_paired_by_seed() -> None:
    table = rates({"untrained": [0.5] * 5, "soft": [0.6, 0.7, 0.8, 0.7, 0.7], "uniform": [0.5, 0.6, 0.7, 0.6, 0.6]})
    untrained, soft, _ = arm_rates(table)
    assert (untrained.arm, untrained.n, untrained.sd["success"]) == ("untrained", 5, 0.0)
    assert soft.mean["success"] == pytest.approx(0.7)
    assert soft.sd["success"] == pytest.approx(np.std([0.6, 0.7, 0.8, 0.7, 0.7], ddof=1))
    found = {(c.treatment, c.control, c.metric): c for c in arm_contrasts(table)}
    assert {key[:2] for key in found} == {("soft", "untrained"), ("uniform", "untrained"), ("soft", "uniform")}
    against = found["soft", "uniform", "success"]
    assert against.contrast.estimate == pytest.approx(0.1)
    assert against.contrast.p == 2 / 2**5
    assert against.holm_p == 3 * 2 / 2**5
    assert found["soft", "uniform", "caller_accuracy"].contrast.estimate == pytest.approx(0.05)


def test_one_seed_gives_no_spread() -> None:
    assert arm_rates(rates({"untrained": [0.5], "uniform": [0.6]}))[1].sd["success"] is None


def test_the_last_or_the_mean_of_the_chosen_generations(roots: dict[str, Path]) -> None:
    done = evaluate([load_run(roots["uniform"])], TASKS, "all")
    records = done[0].records
    last, both = rates_at(done, "all"), rates_at(done, "1-2")
    assert list(last["arm"]) == ["untrained", "uniform"]
    assert last["success"].tolist() == [records[0].success, records[2].success]
    tools = [records[g].metrics["tool_accuracy"] for g in (1, 2)]
    assert both["tool_accuracy"].tolist() == [records[0].metrics["tool_accuracy"], np.mean(tools)]


def test_runs_that_are_one_cell_are_not_mixed(roots: dict[str, Path], tmp_path: Path) -> None:
    twin = shutil.copytree(roots["hard"], tmp_path / "twin")
    with pytest.raises(ConfigError, match="are both hard with seed 1; evaluate them one by one"):
        check_distinct([load_run(root) for root in (*roots.values(), twin)])
    check_distinct([load_run(root) for root in roots.values()])


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run


def test_the_command_prints_writes_and_draws(command: Any, roots: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["evaluate", *roots.values(), "--tasks", "in-house", "--generations", "all", "--out", out, "--json"]
    status, text, notes = command(*arguments)
    assert status == 0, notes
    assert "hard − uniform" in text
    assert "generation 2, success" in notes
    record = json.loads(text.splitlines()[-1])
    assert [row["arm"] for row in record["rows"]] == ["untrained", "uniform", "hard"]
    assert {row["n"] for row in record["contrasts"]} <= {0, 1}
    assert (out / "in_house.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(out / "in_house.csv")) == 6
    assert command(*arguments)[1] == text


def test_the_command_explains_mistakes(command: Any, roots: dict[str, Path]) -> None:
    status, _, error = command("evaluate", roots["hard"], "--tasks", "in-hose")
    assert (status, "did you mean" in error) == (2, True)
    status, _, error = command("evaluate", roots["hard"], "--tasks", TASKS, "--generations", "9")
    assert (status, "has only 2; ask for fewer" in error) == (2, True)
