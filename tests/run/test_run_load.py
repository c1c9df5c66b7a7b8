"""Runs read back: records and the tidy table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from vector_world import MODULES, VectorWorld, vector_config

from nograd.errors import RunError
from nograd.run.load import COLUMNS, MODULE_COLUMNS, find_runs, load, load_run
from nograd.run.loop import run
from nograd.run.summary import RunSummary


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, int], RunSummary]]:
    root = tmp_path_factory.mktemp("sweep")
    summaries = {}
    for arm in ("uniform", "soft"):
        for seed in (1, 2):
            config = vector_config("search.generations=5", f"search.arm={arm}", f"seed={seed}")
            summaries[arm, seed] = run(config, VectorWorld(seed), root / arm / str(seed))
    return root, summaries


def test_the_table_is_tidy(sweep: tuple[Path, dict[tuple[str, int], RunSummary]]) -> None:
    root, summaries = sweep
    table = load(root)
    assert len(table) == 2 * 2 * 5
    assert set(COLUMNS) <= set(table.columns)
    assert {f"{name}_{module}" for name in MODULE_COLUMNS for module in MODULES} <= set(table.columns)
    assert {"tool_accuracy", "call_ok", "requests_asked"} <= set(table.columns)
    assert not table.duplicated(["arm", "seed", "generation"]).any()
    for (arm, seed), summary in summaries.items():
        curve = table[(table["arm"] == arm) & (table["seed"] == seed)]["success"]
        assert curve.mean() == pytest.approx(summary.auc)
    assert (table[[f"allocation_{module}" for module in MODULES]].sum(axis=1) == 4).all()


def test_runs_are_found_once_however_they_are_named(
    sweep: tuple[Path, dict[tuple[str, int], RunSummary]],
) -> None:
    root, _ = sweep
    assert find_runs(root / "soft" / "1") == [root / "soft" / "1"]
    assert len(find_runs(root)) == 4
    assert len(load([root, root / "soft", root / "soft" / "1"])) == len(load(root))


def test_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no run"):
        load(tmp_path)


def test_a_record_has_arrays(sweep: tuple[Path, dict[tuple[str, int], RunSummary]]) -> None:
    record = load_run(sweep[0] / "uniform" / "2")
    assert record.complete
    assert record.config.seed == 2
    assert record.theta.shape == (6, 4, 6)
    assert record.theta.dtype == np.float32
    assert not record.theta[0].any()
    moved = np.linalg.norm(np.diff(record.theta.astype(np.float64), axis=0), axis=2)
    np.testing.assert_allclose(moved, record.array("step_applied"), atol=1e-6)
    assert record.array("allocation").shape == (5, 4)


def test_a_half_finished_run_is_readable_and_says_so(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(_: object) -> None:
        raise StopError

    with pytest.raises(StopError):
        run(vector_config("search.generations=5"), VectorWorld(1), tmp_path, on_generation=stop)
    record = load_run(tmp_path)
    assert not record.complete
    assert record.theta.shape == (2, 4, 6)
    table = load(tmp_path)
    assert len(table) == 1
    assert table["planned_generations"].item() == 5
