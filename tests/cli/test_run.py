"""nograd run, show and ask: real runs of the synthetic world and of a tiny model that answers nonsense."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_command import Command

from nograd.cli.output import SUMMARY_KEYS
from nograd.run.config_source import load_config
from nograd.run.load import load_run

TINY = ["--set", "subspace.dim=2", "--set", "tasks.batch=2", "--pairs", 1, "--generations", 2]


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A finished run of the tiny model, made by the command itself."""
    from nograd.cli import main

    path = tmp_path_factory.mktemp("runs") / "tiny"
    arguments = ["run", "--model", tiny_model, "--dtype", "float32", *TINY, "--out", path]
    assert main([str(argument) for argument in arguments]) == 0
    return path


def test_run_prints_progress_numbers_and_strict_json(nograd: Command, in_tmp: Path) -> None:
    outcome = nograd("run", "--set", "evaluator=synthetic", "--generations", 3, "--json", "--out", "r")
    assert outcome.status == 0
    assert [line.partition(":")[0] for line in outcome.err.splitlines()[-3:]] == [
        f"generation {number}/3" for number in (1, 2, 3)
    ]
    record = outcome.last_json
    assert set(record) == set(SUMMARY_KEYS)
    assert (record["run_dir"], record["peak_memory_bytes"] > 0) == ("r", True)
    success = load_run(in_tmp / "r").array("success")
    assert record["zero_theta_success"] == success[0]
    assert record["auc"] == pytest.approx(success.mean())


def test_flags_go_over_the_file_and_settings_over_flags(nograd: Command, in_tmp: Path) -> None:
    (in_tmp / "mine.toml").write_text('seed = 3\n[search]\narm = "soft"\nsigma = 0.2\npairs = 8\n')
    outcome = nograd(
        "run", "mine.toml", "--arm", "hard", "--pairs", 5, "--set", "search.pairs=6", "--dry-run"
    )
    assert outcome.status == 0
    toml, _, cost = outcome.out.partition("# run directory: ")
    (in_tmp / "printed.toml").write_text(toml)
    config = load_config(in_tmp / "printed.toml")
    assert (config.seed, config.search.arm, config.search.sigma, config.search.pairs) == (3, "hard", 0.2, 6)
    assert cost.startswith("runs/mine-seed3\n")
    assert not (in_tmp / "runs").exists(), "a dry run runs nothing"


@pytest.mark.usefixtures("in_tmp")
def test_dry_run_counts_rollouts_and_requests(nograd: Command) -> None:
    outcome = nograd("run", "--pairs", 2, "--generations", 3, "--set", "tasks.batch=4", "--dry-run")
    assert "# rollouts: 20 per generation, 60 in all" in outcome.out
    assert "# requests asked: 360 to 480" in outcome.out
    assert "# time: not known" in outcome.out


def test_dry_run_judges_time_from_an_earlier_run(nograd: Command, in_tmp: Path, synthetic_run: Path) -> None:
    shutil.copytree(synthetic_run, in_tmp / "runs" / "earlier")
    outcome = nograd("run", "--set", "evaluator=synthetic", "--generations", 100, "--dry-run")
    assert "# time: about " in outcome.out


def test_default_directories_are_named_and_never_reused(nograd: Command, in_tmp: Path) -> None:
    arguments = ["run", "--set", "evaluator=synthetic", "--generations", 1, "--arm", "hard_noisy:q=0.5"]
    for _ in range(2):
        assert nograd(*arguments).status == 0
    found = sorted(path.name for path in (in_tmp / "runs").iterdir())
    assert found == ["synthetic-hard_noisy-q-0.5-seed1", "synthetic-hard_noisy-q-0.5-seed1-2"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tasks", "in_house", "--set", "tasks.batch=33"], "in_house has 32 tasks"),
        (["--arm", "uniform:floor=2"], "takes 8 pairs of 4"),
        (["--arm", "oracle"], "needs a known bottleneck, which only the synthetic environment has"),
        (["--set", "search.clip.callr=0.2"], "did you mean 'caller'?"),
        (["--set", "evaluator=agnet"], "did you mean 'agent'?"),
        (["nowhere.toml"], "cannot read the configuration nowhere.toml"),
        (["--resume", "nowhere"], "nowhere holds no run"),
        (["--resume", "a", "--out", "b"], "give one of them"),
    ],
)
def test_mistakes_are_found_before_anything_is_loaded(
    arguments: list[str], sentence: str, nograd: Command, in_tmp: Path
) -> None:
    outcome = nograd("run", *arguments)
    assert outcome.status == 2
    assert sentence in outcome.err
    assert "loading" not in outcome.err
    assert not list(in_tmp.iterdir())


def test_a_directory_with_a_run_is_refused(nograd: Command, synthetic_run: Path) -> None:
    outcome = nograd("run", "--set", "evaluator=synthetic", "--out", synthetic_run)
    assert outcome.status == 2
    assert "already holds a run; resume it or choose another directory" in outcome.err
    assert "loading" not in outcome.err


def test_resume_takes_the_runs_own_settings(nograd: Command, synthetic_run: Path) -> None:
    outcome = nograd("run", "--resume", synthetic_run, "--json")
    assert outcome.status == 0
    assert outcome.last_json["auc"] == pytest.approx(load_run(synthetic_run).array("success").mean())


def test_resume_refuses_changed_settings_by_name(nograd: Command, synthetic_run: Path) -> None:
    outcome = nograd("run", "--resume", synthetic_run, "--seed", 9)
    assert outcome.status == 2
    assert "seed was 1 and is now 9" in outcome.err
    assert "loading" not in outcome.err


def test_show_one_run(nograd: Command, synthetic_run: Path) -> None:
    outcome = nograd("show", synthetic_run, "--json")
    assert outcome.status == 0
    assert "6 of 6 generations" in outcome.out
    for module in load_run(synthetic_run).modules:
        assert f"\n{module} " in outcome.out
    assert set(outcome.last_json) == set(SUMMARY_KEYS)


def test_show_several_runs_as_a_list(nograd: Command, in_tmp: Path, synthetic_run: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(synthetic_run, in_tmp / "runs" / name)
    outcome = nograd("show", "runs")
    assert [line.split()[0] for line in outcome.out.splitlines()] == ["run", "runs/one", "runs/two"]
    assert "give its directory" in nograd("show", "runs", "--json").err


def test_show_an_unfinished_run_says_how_to_go_on(nograd: Command, in_tmp: Path, synthetic_run: Path) -> None:
    shutil.copytree(synthetic_run, in_tmp / "run")
    lines = (in_tmp / "run" / "generations.jsonl").read_bytes().splitlines(keepends=True)
    for kept in (2, 0):
        (in_tmp / "run" / "generations.jsonl").write_bytes(b"".join(lines[:kept]))
        outcome = nograd("show", "run")
        assert f"{kept} of 6 generations; go on with: nograd run --resume run" in outcome.out


@pytest.mark.usefixtures("in_tmp")
def test_show_and_ask_need_a_run(nograd: Command, synthetic_run: Path) -> None:
    assert "holds no run" in nograd("show", "nowhere").err
    assert "holds no run" in nograd("ask", "nowhere", "1 + 1?").err
    assert "has no language model to ask" in nograd("ask", synthetic_run, "1 + 1?").err


def test_a_tiny_model_is_run_shown_and_asked(nograd: Command, tiny_run: Path) -> None:
    assert "2 of 2 generations" in nograd("show", tiny_run).out
    outcome = nograd("ask", tiny_run, "What is 3 + 4?")
    assert outcome.status == 0
    untouched, _, tuned = outcome.out.partition("tuned, 2 generations")
    for part in (untouched, tuned):
        for stage in ("planner", "selector", "synthesizer", "answer"):
            assert f"\n  {stage} " in part


def test_ask_refuses_another_model(nograd: Command, tiny_run: Path, in_tmp: Path) -> None:
    copy = in_tmp / "run"
    shutil.copytree(tiny_run, copy)
    environment = (copy / "environment.json").read_text()
    fingerprint = load_run(copy).environment["identity"]["facts"]["fingerprint"]
    (copy / "environment.json").write_text(environment.replace(fingerprint, "0" * 64))
    outcome = nograd("ask", copy, "What is 3 + 4?")
    assert outcome.status == 2
    assert "fingerprint" in outcome.err
