"""The plans for what the paper names as open: each loads, is costed, runs when shrunk, and can be scored."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_world import write_plan

from nograd.cli import main
from nograd.errors import AssetError, ConfigError
from nograd.run import layout
from nograd.run.evaluations import read_evaluations
from nograd.run.load import load_run
from nograd.study.cell_state import inspect
from nograd.study.cells import cells, rollouts
from nograd.study.ledger import score
from nograd.study.metrics import measure
from nograd.study.plan_file import load_plan, make_plan
from nograd.study.progress import Progress
from nograd.study.results import collect
from nograd.study.scaling import Scaling
from nograd.study.sweep import run_sweep
from nograd.study.sweep_directory import Sweep, create_sweep, open_sweep
from nograd.tasks.registry import family
from tiny_models import save_tiny_chat

OPEN = ("bandit", "burst-spread", "echo", "held-out-curves", "per-layer")
SYNTHETIC = {"evaluator": "synthetic", "tasks": {"family": "synthetic"}}
TINY: dict[str, Any] = {
    "model": {"dtype": "float32"},
    "subspace": {"dim": 4},
    "search": {"pairs": 2},
    "agent": {"token_limits": dict.fromkeys(("planner", "selector", "caller", "synthesizer"), 2)},
    "execution": {"threads": 1, "device": "cpu"},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny", max_position_embeddings=4096))


@pytest.fixture(autouse=True, scope="module")
def own_subspaces(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Decompositions of the tiny model stay out of the cache; BFCL is read from there."""
    from nograd.run import build_agent

    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_agent, "cache_dir", lambda: folder)
        yield


def tiny_sweep(plan: str, root: Path, model: str, generations: int) -> Sweep:
    scaling = Scaling(model=model, seeds=(1,), generations=generations, batch=1, settings=TINY)
    return create_sweep(root, load_plan(plan), scaling)


@pytest.mark.parametrize("name", OPEN)
def test_every_open_question_has_predictions_and_a_cost(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = load_plan(name).plan
    assert len(plan.predictions) >= 3
    assert main(["plans", name]) == 0
    assert all(prediction.claim in " ".join(capsys.readouterr().out.split()) for prediction in plan.predictions[:1])
    assert main(["sweep", name, "--dry-run"]) == 0
    assert f"rollouts: {rollouts(plan):,}" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["bandit", "burst-spread"])
def test_shrunk_without_a_language_model(name: str, tmp_path: Path) -> None:
    scaling = Scaling(seeds=(1, 2), generations=6, settings=SYNTHETIC)
    sweep = create_sweep(tmp_path / "sweep", load_plan(name), scaling)
    assert run_sweep(sweep).finished
    rows = score([sweep], sweep.file)
    assert {row.outcome for row in rows} <= {"hit", "miss"}
    assert all(scored.value is not None for row in rows for scored in row.criteria)


def test_untied_coefficients_on_a_model(model: str, tmp_path: Path) -> None:
    sweep = tiny_sweep("per-layer", tmp_path / "sweep", model, 2)
    assert run_sweep(sweep).finished
    sizes = {label: load_run(sweep.root / label / "seed-0001").theta.shape[2] for label in sweep.file.plan.arms}
    assert sizes == {"tied": 4, "per-layer": 8, "per-layer-clip": 8, "per-layer-hard": 8}
    assert {row.outcome for row in score([sweep], sweep.file)} <= {"hit", "miss"}


def test_the_target_that_is_no_constant_on_a_model(model: str, tmp_path: Path) -> None:
    try:
        family("bfcl")
    except AssetError as error:
        pytest.skip(f"BFCL cannot be fetched: {error}")
    sweep = tiny_sweep("echo", tmp_path / "sweep", model, 1)
    assert run_sweep(sweep).finished
    runs = {cell.label: load_run(sweep.path(cell)) for cell in sweep.cells}
    tasks = {label: run.environment["identity"]["facts"]["tasks"] for label, run in runs.items()}
    assert len({tasks[label] for label in tasks if label.startswith("echo.")}) == 1
    assert tasks["constant.hard"] != tasks["echo.hard"]
    gain, hard, relay = score([sweep], sweep.file)
    assert {gain.outcome, hard.outcome} <= {"hit", "miss"}
    assert "seed 1 has no pair" in relay.evidence[0], "a random model makes no call that there is a relay after"


@pytest.fixture(scope="module")
def curves(model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Sweep, list[Progress]]:
    """A finished sweep with held-out curves, and how it went."""
    text = load_plan("held-out-curves").text.replace("every = 5", "every = 2").replace("_heldout", "")
    path = tmp_path_factory.mktemp("plan") / "held-out-curves.toml"
    path.write_text(text, encoding="utf-8")
    news: list[Progress] = []
    sweep = tiny_sweep(str(path), path.parent / "sweep", model, 3)
    assert run_sweep(sweep, on_progress=news.append).finished
    return sweep, news


def test_held_out_curves_are_evaluated_kept_and_scored(curves: tuple[Sweep, list[Progress]]) -> None:
    sweep, news = curves
    results = collect([sweep])
    for cell in sweep.cells:
        run = load_run(sweep.path(cell))
        records = read_evaluations(run, "in_house")
        assert list(records) == [0, 2, 3]
        measured = results.measured[cell.label][cell.seed]
        curve = [record.success for record in records.values()]
        np.testing.assert_array_equal(measured.heldout, curve)
        assert measure("heldout_auc", measured) == pytest.approx(np.mean(curve))
        assert measure("heldout_success", measured) == curve[-1]
        assert measure("heldout_gain", measured) == curve[-1] - curve[0]
        assert measure("heldout_decline", measured) == max(curve) - curve[-1]
    assert {row.outcome for row in score([sweep], sweep.file)} <= {"hit", "miss"}
    total = 3 * (3 * 5 * 1 + 3 * 32)
    assert news[-1].rollouts == (total, total) == (rollouts(sweep.file.plan, sweep.scaling),) * 2
    done = [progress.rollouts[0] for progress in news]
    assert done == sorted(done)
    assert [state.kind for state in inspect(sweep)] == ["complete"] * 3


def test_a_sweep_goes_on_with_evaluations_that_are_missing(
    curves: tuple[Sweep, list[Progress]], tmp_path: Path
) -> None:
    original = curves[0].root
    root = Path(shutil.copytree(original, tmp_path / "sweep"))
    file = layout.evaluations(root / "soft/seed-0001", "in_house")
    whole = file.read_bytes()
    file.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    sweep = open_sweep(root)
    soft = next(state for state in inspect(sweep) if state.cell.label == "soft")
    assert (soft.kind, soft.steps, soft.planned) == ("half-finished", 5, 6)
    news: list[Progress] = []
    assert run_sweep(sweep, on_progress=news.append).finished
    assert file.read_bytes() == whole
    assert [progress.event.step for progress in news if progress.event and progress.event.kind == "step"] == [5]


def test_held_out_curves_need_the_agent_and_a_family(tmp_path: Path) -> None:
    plan = load_plan("held-out-curves").plan
    with pytest.raises(ConfigError, match=r"arm 'uniform': a plan with \[heldout\] evaluates the four-stage agent"):
        cells(plan, Scaling(settings=SYNTHETIC))
    with pytest.raises(ConfigError, match=r"heldout.family: unknown task family 'in_hose'; did you mean 'in_house'"):
        make_plan(plan.model_dump() | {"heldout": {"family": "in_hose"}}, "own.toml")
    with pytest.raises(ConfigError, match=r"heldout.family = 'jsonl': must be a family that comes with nograd"):
        make_plan(plan.model_dump() | {"heldout": {"family": "jsonl"}}, "own.toml")
    with pytest.raises(ConfigError, match=r"heldout.evry: unknown key; did you mean every\?"):
        write_plan(tmp_path, '[heldout]\nfamily = "in_house"\nevry = 2\n')
    replay = {"source": "main", "family": "in_house", "batch": 4}
    with pytest.raises(ConfigError, match="a replay trains nothing to evaluate"):
        make_plan(plan.model_dump() | {"replay": replay}, "own.toml")


def test_the_evaluated_coefficients_start_and_end_the_run() -> None:
    heldout = load_plan("held-out-curves").plan.heldout
    assert heldout is not None
    assert heldout.after(45) == (0, 5, 10, 15, 20, 25, 30, 35, 40, 45)
    assert heldout.after(12) == (0, 5, 10, 12)
    assert heldout.after(3) == (0, 3)
