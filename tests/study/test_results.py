"""From sweeps to numbers: metrics, tables, contrasts, regression; what is missing is named, not averaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from study_world import build, new_sweep

from nograd.errors import ConfigError, RunError
from nograd.run.load import load_run
from nograd.stats import holm
from nograd.study.cell_state import measured_of
from nograd.study.contrasts import arm_rows, most_credited, starvation_fit
from nograd.study.metrics import METRICS, Measured, measure
from nograd.study.results import collect, frame, metric_frame
from nograd.study.scaling import Scaling
from nograd.study.sweep import run_sweep
from nograd.study.sweep_directory import Sweep, create_sweep, open_sweep


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    sweep = new_sweep(tmp_path_factory.mktemp("results"), seeds="1-4", generations=6)
    assert run_sweep(sweep, build=build).finished
    return sweep


def success(sweep: Sweep, label: str, seed: int) -> np.ndarray:
    return load_run(sweep.root / label / f"seed-{seed:04d}").array("success")


def test_metrics_are_those_of_the_run(sweep: Sweep) -> None:
    run = load_run(sweep.root / "locked/seed-0002")
    measured = measured_of(run)
    curve = run.array("success")
    assert measure("auc", measured) == pytest.approx(curve.mean())
    assert measure("final_success", measured) == curve[-1]
    assert measure("last5_success", measured) == pytest.approx(curve[-5:].mean())
    assert measure("gain", measured) == pytest.approx(curve.mean() - curve[0])
    assert measure("first_half_auc", measured) == pytest.approx(curve[:3].mean())
    assert measure("second_half_auc", measured) == pytest.approx(curve[3:].mean())
    assert measure("concentration", measured) == 1.0
    assert measure("starvation:caller", measured) == 0.0
    assert measure("starvation:planner", measured) == 1.0
    assert measure("share:caller", measured) == 1.0
    assert measure("movement:caller", measured) == pytest.approx(run.array("step_applied")[:, 2].sum())
    calls = np.mean([record.metrics["call_ok"] for record in run.generations])
    assert measure("caller_accuracy", measured) == pytest.approx(calls)
    assert np.isnan(measure("relay", measured)), "the vector world has no such metric"
    with pytest.raises(ConfigError, match="unknown module in metric 'credit:calller'"):
        measure("credit:calller", measured)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_bears_the_shortest_run(name: str) -> None:
    one = np.ones((1, 1))
    measured = Measured(("a",), np.array([0.5]), {}, one, one, one)
    assert isinstance(measure(name, measured), float)


def test_the_frame_is_tidy(sweep: Sweep) -> None:
    table = frame([sweep])
    assert len(table) == 3 * 4 * 6
    assert not table.duplicated(["plan", "label", "seed", "generation"]).any()
    assert table["complete"].all()
    assert set(table["label"]) == {"uniform", "hard", "locked"}


def test_arm_rows_are_paired_contrasts(sweep: Sweep) -> None:
    rows = {row.label: row for row in arm_rows(collect([sweep]), sweep.file.plan)}
    assert list(rows) == ["uniform", "hard", "locked"]
    aucs = {label: [success(sweep, label, seed).mean() for seed in range(1, 5)] for label in rows}
    assert rows["uniform"].contrast is None
    assert rows["uniform"].mean == pytest.approx(np.mean(aucs["uniform"]))
    for label in ("hard", "locked"):
        contrast = rows[label].contrast
        assert contrast is not None
        assert contrast.seeds == (1, 2, 3, 4)
        assert contrast.estimate == pytest.approx(np.mean(aucs[label]) - np.mean(aucs["uniform"]))
        oracle = stats.permutation_test(
            (aucs[label], aucs["uniform"]), lambda x, y: np.mean(x - y), permutation_type="samples"
        )
        assert contrast.p == pytest.approx(oracle.pvalue)
    ps = [row.contrast.p if row.contrast else None for row in rows.values()]
    assert [row.holm_p for row in rows.values()] == list(holm(ps))


def test_metric_frame_has_a_row_per_run(sweep: Sweep) -> None:
    table = metric_frame(collect([sweep]), ["auc", "starvation:caller"])
    assert table.shape == (12, 4)
    picked = table[(table["label"] == "hard") & (table["seed"] == 3)]
    assert picked["auc"].item() == pytest.approx(success(sweep, "hard", 3).mean())


def test_starvation_regression(sweep: Sweep) -> None:
    results = collect([sweep])
    fit = starvation_fit(results, sweep.file.plan, "synthesizer")
    rates = [np.mean(list(results.values("starvation:synthesizer", arm).values())) for arm in ("hard", "locked")]
    deltas = [
        np.mean([success(sweep, arm, seed).mean() - success(sweep, "uniform", seed).mean() for seed in range(1, 5)])
        for arm in ("hard", "locked")
    ]
    assert fit.line.slope == pytest.approx((deltas[1] - deltas[0]) / (rates[1] - rates[0]))
    with pytest.raises(RunError, match="'uniform' is the baseline"):
        starvation_fit(results, sweep.file.plan, "caller", ["uniform"])
    assert most_credited(results, "uniform") in ("planner", "selector", "caller", "synthesizer")


def test_half_finished_runs_are_named_and_left_out(sweep: Sweep, tmp_path: Path) -> None:
    shutil.copytree(sweep.root, tmp_path / "sweep")
    lines = tmp_path / "sweep/hard/seed-0003/generations.jsonl"
    lines.write_bytes(b"".join(lines.read_bytes().splitlines(keepends=True)[:2]))
    shutil.rmtree(tmp_path / "sweep/hard/seed-0004")
    part = open_sweep(tmp_path / "sweep")
    results = collect([part])
    row = arm_rows(results, part.file.plan)[1]
    assert set(row.values) == {1, 2}
    assert row.unfinished == ("hard/seed-0003 is half-finished (2 of 6)", "hard/seed-0004 is missing")
    assert row.contrast is not None
    assert [dropped.seed for dropped in row.contrast.dropped] == [3, 4]
    table = frame([part])
    assert len(table[(table["label"] == "hard") & (table["seed"] == 3)]) == 2
    assert not table[(table["label"] == "hard") & (table["seed"] == 3)]["complete"].any()


def test_sweeps_with_other_seeds_go_together(sweep: Sweep, tmp_path: Path) -> None:
    other = create_sweep(tmp_path / "more", sweep.file, Scaling(seeds=(5, 6)))
    run_sweep(other, build=build)
    assert set(collect([sweep, other]).measured["hard"]) == {1, 2, 3, 4, 5, 6}


def test_overlapping_seeds_count_once_or_are_an_error(sweep: Sweep, tmp_path: Path) -> None:
    same = create_sweep(tmp_path / "same", sweep.file, Scaling(seeds=(4,)))
    run_sweep(same, build=build)
    assert set(collect([sweep, same]).measured["hard"]) == {1, 2, 3, 4}
    lines = same.root / "hard/seed-0004/generations.jsonl"
    text = lines.read_text(encoding="utf-8")
    value = str(success(same, "hard", 4)[0])
    other = "0.0" if value != "0.0" else "1.0"
    lines.write_text(text.replace(f'"success":{value}', f'"success":{other}'), encoding="utf-8")
    with pytest.raises(RunError, match="both hold hard/seed-0004, with different results"):
        collect([sweep, same])


def test_other_settings_under_one_label_are_an_error(sweep: Sweep, tmp_path: Path) -> None:
    other = create_sweep(tmp_path / "other", sweep.file, Scaling(seeds=(9,), settings={"search": {"lr": 0.1}}))
    with pytest.raises(RunError, match=r"arm 'uniform' has search.lr = 0.3 in .* and 0.1 in .*; look at"):
        collect([sweep, other])


def test_an_unknown_arm_is_an_error(sweep: Sweep) -> None:
    with pytest.raises(RunError, match="no sweep has the arm 'sof'"):
        collect([sweep]).values("auc", "sof")
