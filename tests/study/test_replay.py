"""Replays: trained coefficients on other tasks, against a direct evaluation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from study_world import build, new_sweep
from vector_world import VectorWorld

from nograd.errors import ConfigError, RunError
from nograd.run.config import RunConfig
from nograd.run.evaluators import Built
from nograd.run.load import load_run
from nograd.search.evaluation import Evaluation, GenerationResult
from nograd.study.cell_state import inspect
from nograd.study.executors import ExecutorOptions, make_executor
from nograd.study.ledger import score
from nograd.study.plan_file import PlanFile, load_plan
from nograd.study.replay import REPLAY
from nograd.study.results import collect, frame
from nograd.study.sweep import run_sweep
from nograd.study.sweep_directory import Sweep, create_sweep

PLAN = """
title = "Replay"
baseline = "uniform"
seeds = "1-2"
arms = { uniform = "uniform", hard = "hard" }

[replay]
source = "test"
family = "other"
batch = 5
last = 2

[[predictions]]
id = "gain"
claim = "Uniform's gain is a share"
why = "success is one"
criteria = [{ metric = "final_gain", of = "uniform", low = -1.0, high = 1.0 }]
"""


def share(theta: NDArray[np.float32]) -> float:
    """A number in (0, 1) that tells one θ from another."""
    return float(1 / (1 + np.exp(-theta.astype(np.float64).sum())))


class ThetaWorld(VectorWorld):
    """Succeeds with the share of its center."""

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        assert generation == 0
        center = Evaluation(fitness=0.0, success=share(thetas[0]), reward=0.0)
        return GenerationResult((center,))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    sweep = new_sweep(tmp_path_factory.mktemp("source"))
    assert run_sweep(sweep, build=build).finished
    return sweep


def replay_plan(folder: Path, text: str = PLAN) -> PlanFile:
    path = folder / "replay.toml"
    path.write_text(text, encoding="utf-8")
    return load_plan(path)


def test_a_replay_evaluates_the_last_coefficients(source: Sweep, tmp_path: Path) -> None:
    asked: list[RunConfig] = []

    def noting(config: RunConfig) -> Built:
        asked.append(config)
        return Built(ThetaWorld(config.seed), facts={"world": "theta"})

    sweep = create_sweep(tmp_path / "sweep", replay_plan(tmp_path), source=source.root)
    assert run_sweep(sweep, build=noting).finished
    assert {(config.tasks.family, config.tasks.batch) for config in asked} == {("other", 5)}
    assert {config.evaluator for config in asked} == {"vector"}, "the rest is the trained run's"
    measured = collect([sweep]).measured["hard"][2]
    theta = load_run(source.root / "hard/seed-0002").theta
    assert len({share(one) for one in theta}) == 5, "every generation moved"
    np.testing.assert_array_equal(measured.success, [share(theta[g]) for g in (0, 3, 4)])
    assert len(frame([sweep])) == 2 * 2 * 3
    (row,) = score([sweep], sweep.file)
    assert row.outcome == "hit"


def test_workers_and_sessions_give_the_same_bytes(source: Sweep, tmp_path: Path) -> None:
    file = replay_plan(tmp_path)
    one = create_sweep(tmp_path / "one", file, source=source.root)
    two = create_sweep(tmp_path / "two", file, source=source.root)
    run_sweep(one, build=build)
    run_sweep(two, make_executor("local", ExecutorOptions(workers=2)), build=build)
    (two.path(two.cells[0]) / REPLAY).unlink()
    assert [state.kind for state in inspect(two)].count("missing") == 1
    run_sweep(two, build=build)
    for cell in one.cells:
        assert (one.path(cell) / REPLAY).read_bytes() == (two.path(cell) / REPLAY).read_bytes()


def test_damage_is_seen(source: Sweep, tmp_path: Path) -> None:
    sweep = create_sweep(tmp_path / "sweep", replay_plan(tmp_path), source=source.root)
    run_sweep(sweep, build=build)
    (sweep.path(sweep.cells[0]) / REPLAY).write_bytes(b"{}")
    (sweep.path(sweep.cells[1]) / REPLAY).write_bytes((sweep.path(sweep.cells[2]) / REPLAY).read_bytes())
    first, second, *others = inspect(sweep)
    assert (first.kind, second.kind) == ("damaged", "damaged")
    assert "delete it and resume the sweep" in first.text
    assert "made with other settings" in second.text
    assert {state.kind for state in others} == {"complete"}


def test_a_replay_needs_the_right_source(source: Sweep, tmp_path: Path) -> None:
    file = replay_plan(tmp_path)
    with pytest.raises(ConfigError, match="run that plan first and name its directory"):
        create_sweep(tmp_path / "a", file)
    wrong = replay_plan(tmp_path, PLAN.replace('"test"', '"main"'))
    with pytest.raises(ConfigError, match=r"replays a 'main' sweep, but .* holds a 'test' sweep"):
        create_sweep(tmp_path / "b", wrong, source=source.root)
    with pytest.raises(ConfigError, match="plan 'test' is no replay"):
        create_sweep(tmp_path / "c", source.file, source=source.root)
    with pytest.raises(RunError, match="holds no sweep"):
        create_sweep(tmp_path / "d", file, source=tmp_path)


def test_half_finished_or_short_sources_fail_their_cells_only(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    source = new_sweep(tmp_path / "source")
    run_sweep(source, build=build)
    lines = source.root / "hard/seed-0001/generations.jsonl"
    lines.write_bytes(lines.read_bytes().splitlines(keepends=True)[0])
    sweep = create_sweep(tmp_path / "sweep", replay_plan(tmp_path), source=source.root)
    outcome = run_sweep(sweep, build=build)
    assert set(outcome.failed) == {"hard/seed-0001"}
    assert "is half-finished; resume the sweep" in outcome.failed["hard/seed-0001"]
    longer = replay_plan(tmp_path, PLAN.replace("last = 2", "last = 9"))
    outcome = run_sweep(create_sweep(tmp_path / "long", longer, source=source.root), build=build)
    assert "has only 4 generations, not 9" in outcome.failed["uniform/seed-0001"]
