"""What the report says, against the runs themselves and against the paper's printed numbers."""

from __future__ import annotations

import csv
import itertools
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from report_sweeps import synthetic_sweep
from scipy import stats

from nograd.errors import ConfigError, RunError
from nograd.report.gather import Study, gather, ledger_rows
from nograd.report.page import sections
from nograd.report.paper_arms import STARVATION_ARMS, find
from nograd.report.paper_figures import BFCL_ARMS
from nograd.report.paper_tables import paper_tables
from nograd.report.record_tables import ledger_table, scaled_notes
from nograd.report.starvation import regressions
from nograd.report.study_tables import contrast_table, missing_table, movement_table, pooled_table
from nograd.report.table import Table
from nograd.report.write import write_report
from nograd.run.load import load_run
from nograd.study.plan_file import load_plan
from nograd.study.sweep_directory import create_sweep

Row = Mapping[str, object]


def rows(table: Table) -> dict[object, Row]:
    """First cell → column → value."""
    return {row[0].value: dict(zip(table.columns, (c.value for c in row), strict=True)) for row in table.rows}


def success(sweeps: Path, plan: str, arm: str, seed: int) -> np.ndarray:
    return load_run(sweeps / plan / arm / f"seed-{seed:04d}").array("success")


def study(studies: tuple[Study, ...], plan: str) -> Study:
    return next(study for study in studies if study.file.name == plan)


def test_the_contrast_table_is_what_the_runs_say(studies: tuple[Study, ...], sweeps: Path) -> None:
    table = rows(contrast_table(study(studies, "main")))
    assert list(table) == ["uniform", "soft", "hard", "random"]
    auc = {arm: [success(sweeps, "main", arm, s).mean() for s in (1, 2, 3)] for arm in table}
    for arm, row in table.items():
        assert row["mean"] == pytest.approx(np.mean(auc[arm]))
        assert row["SD"] == pytest.approx(np.std(auc[arm], ddof=1))
        if arm == "uniform":
            assert row["Δ"] is row["p"] is None
            continue
        differences = np.subtract(auc[arm], auc["uniform"])
        flipped = [abs(np.dot(signs, differences)) for signs in itertools.product((1, -1), repeat=3)]
        low, high = stats.t.interval(0.95, 2, differences.mean(), stats.sem(differences))
        assert row["Δ"] == pytest.approx(differences.mean())
        assert (row["CI low"], row["CI high"]) == pytest.approx((low, high))
        assert row["p"] == pytest.approx(np.mean(np.array(flipped) >= abs(differences.sum()) - 1e-12))


def test_an_unfinished_run_is_named_and_in_no_mean(sweeps: Path, tmp_path: Path) -> None:
    shutil.copytree(sweeps / "main", tmp_path / "main")
    shutil.rmtree(tmp_path / "main/hard/seed-0003")
    lines = (tmp_path / "main/soft/seed-0002/generations.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "main/soft/seed-0002/generations.jsonl").write_bytes(b"".join(lines[:5]))
    (half,) = gather([tmp_path])
    table = contrast_table(half)
    row = rows(table)["soft"]
    assert row["n"] == 2
    assert row["mean"] == pytest.approx(np.mean([success(sweeps, "main", "soft", s).mean() for s in (1, 3)]))
    assert any("soft: without seeds 2" in note for note in table.notes)
    states = [row[3].text for row in missing_table([half]).rows]
    assert states == ["soft/seed-0002 is half-finished (5 of 8)", "hard/seed-0003 is missing"]
    (section, *_) = sections([half])
    assert "10 of 12 runs complete" in section.lead


def test_a_sweep_without_any_finished_run_still_has_a_report(sweeps: Path, tmp_path: Path) -> None:
    root = tmp_path / "main"
    root.mkdir()
    for name in ("plan.toml", "sweep.json"):
        shutil.copy(sweeps / "main" / name, root / name)
    written = write_report(gather([root]), tmp_path / "out")
    assert "0 of 12 runs complete" in written.page.read_text(encoding="utf-8")
    assert written.figures == 0


def test_tables_1_and_5_carry_the_paper_s_numbers(studies: tuple[Study, ...], sweeps: Path) -> None:
    tables = {table.name: table for table in paper_tables(studies)}
    assert set(tables) == {f"paper-table-{n}" for n in (1, 2, 5, 6)}
    one = rows(tables["paper-table-1"])
    assert [one[arm]["AUC ± SD ‡"] for arm in one] == [0.8418, 0.8280, 0.8389, 0.7675]
    assert one["soft"]["Δ ‡"] == -0.0139
    five = rows(tables["paper-table-5"])
    assert list(five) == ["hard", "hard~0.25", "hard~0.5", "hard~0.75", "random"]
    assert five["hard~0.75"]["measured ‡"] == 0.519
    assert five["random"]["p ‡"] == 0.008
    six = rows(tables["paper-table-6"])
    assert six["nonstationary_tight"]["random ‡"] == -0.220
    expected = np.mean([success(sweeps, "prestudy", "stationary_tight.uniform", s).mean() for s in (1, 2)])
    assert six["stationary_tight"]["uniform AUC"] == pytest.approx(expected)


def test_a_replay_is_about_coefficients(replayed: tuple[Study, ...], tmp_path: Path) -> None:
    held_out = study(replayed, "held-out")
    measured = held_out.results.measured
    main = rows(contrast_table(held_out, "final_success"))
    assert main["hard"]["mean"] == pytest.approx(np.mean([r.success[-1] for r in measured["hard"].values()]))
    three = rows(next(table for table in paper_tables(replayed) if table.name == "paper-table-3"))
    untrained = np.mean([run.success[0] for runs in measured.values() for run in runs.values()])
    assert three["untrained (θ = 0)"]["success"] == pytest.approx(untrained)
    assert [row["success ‡"] for row in three.values()] == [0.583, 0.696, 0.743, 0.660, 0.717]
    write_report(replayed, tmp_path)
    assert (tmp_path / "figures/paper-figure-3.svg").exists()
    assert (tmp_path / "figures/held-out-seeds-soft.png").exists()
    assert not list((tmp_path / "figures").glob("held-out-credit-*"))


def test_arms_of_the_paper_exist_in_the_plans(studies: tuple[Study, ...]) -> None:
    for plan, label in [*STARVATION_ARMS.values(), *((plan, label) for plan, label, _ in BFCL_ARMS)]:
        assert label in load_plan(plan).plan.arms
    assert find(studies, "main", "uniform") is None
    assert find(studies, "bfcl-main", "hard") is None


def test_the_regression_is_about_the_most_credited_module(studies: tuple[Study, ...]) -> None:
    (regression,) = regressions(study(studies, "main"))
    assert regression.baseline == "uniform"
    runs = study(studies, "main").results.measured["uniform"].values()
    credit = np.mean([run.credit for run in runs], axis=(0, 1))
    assert next(iter(runs)).modules[int(credit.argmax())] == regression.module
    rates = [rate for rate, _ in regression.points.values()]
    losses = [contrast.estimate for _, contrast in regression.points.values()]
    slope, _ = np.polyfit(rates, np.array(losses, float), 1)
    assert regression.fit.line.slope == pytest.approx(slope)


def test_compensated_steps_are_in_no_regression(tmp_path: Path) -> None:
    synthetic_sweep(tmp_path, "burst", (1, 2), 4)
    (regression,) = regressions(gather([tmp_path])[0])
    assert list(regression.points) == ["burst", "burst-clip"]


def test_an_extension_is_pooled_and_called_descriptive(sweeps: Path, tmp_path: Path) -> None:
    synthetic_sweep(tmp_path, "seed-extension", (9, 10), 8)
    main, extension = gather([sweeps / "main", tmp_path])
    assert pooled_table(main) is None
    pooled = pooled_table(extension)
    assert pooled is not None
    assert pooled.notes[0].startswith("Descriptive: plan seed-extension was decided after")
    soft = rows(pooled)["soft"]
    roots = {1: sweeps, 2: sweeps, 3: sweeps, 9: tmp_path, 10: tmp_path}
    plans = {seed: "main" if seed < 9 else "seed-extension" for seed in roots}
    aucs = [success(roots[seed], plans[seed], "soft", seed).mean() for seed in roots]
    assert (soft["n"], soft["mean"]) == (5, pytest.approx(np.mean(aucs)))
    assert rows(contrast_table(extension))["soft"]["n"] == 2


def test_modules_moved_and_starved_as_the_runs_say(studies: tuple[Study, ...], sweeps: Path) -> None:
    table = movement_table(study(studies, "main"))
    assert table is not None
    runs = [load_run(sweeps / f"main/hard/seed-000{seed}") for seed in (1, 2, 3)]
    (cells,) = [row for row in table.rows if (row[0].text, row[1].text) == ("hard", "selector")]
    pairs = np.stack([run.array("allocation") for run in runs])
    moved = np.mean([run.array("step_applied")[:, 1].sum() for run in runs])
    expected = [moved, (pairs[:, :, 1] == 0).mean(), pairs[:, :, 1].sum() / pairs.sum()]
    expected.append(np.mean([run.array("credit_before")[:, 1].mean() for run in runs]))
    assert [cell.value for cell in cells[2:]] == pytest.approx(expected)


def test_the_ledger_says_that_a_sweep_was_scaled(studies: tuple[Study, ...]) -> None:
    floor = study(studies, "floor")
    (note,) = scaled_notes([floor])
    assert "seeds = 1-2" in note
    assert "evaluator = synthetic" in note
    assert note in ledger_table([floor]).notes
    assert [row.prediction.id for row in ledger_rows(floor)] == ["F1", "F2"]
    assert rows(ledger_table([floor]))["floor"]["outcome"] in ("hit", "miss")


def test_figures_and_tables_are_files_beside_the_page(report: Path) -> None:
    page = (report / "index.html").read_text(encoding="utf-8")
    drawn = re.findall(r"<svg ", page)
    vectors, pixels = sorted(report.glob("figures/*.svg")), sorted(report.glob("figures/*.png"))
    assert len(drawn) == len(vectors) == len(pixels) > 20
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pixels)
    for path in report.glob("tables/*.csv"):
        lines = list(csv.reader(path.open(encoding="utf-8", newline="")))
        assert len({len(line) for line in lines}) == 1
        assert path.with_suffix(".md").exists()


def test_the_page_needs_no_network_and_no_id_twice(report: Path) -> None:
    page = (report / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page)
    assert not re.findall(r"@import|url\((?!#)[^)]*\)|fetch\(", page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page):
        assert (target[0] or target[1]) in ids


def test_the_same_sweeps_give_the_same_figures(
    studies: tuple[Study, ...], report: Path, tmp_path: Path
) -> None:
    write_report([study(studies, "floor")], tmp_path)
    for path in tmp_path.glob("figures/floor-*.svg"):
        assert path.read_bytes() == (report / "figures" / path.name).read_bytes()


def test_plans_of_one_name_and_other_arms_are_not_mixed(sweeps: Path, tmp_path: Path) -> None:
    text = (sweeps / "floor/plan.toml").read_text(encoding="utf-8").split("[[predictions]]")[0]
    (tmp_path / "floor.toml").write_text(text + 'more = "random"\n', encoding="utf-8")
    other = create_sweep(tmp_path / "other", load_plan(tmp_path / "floor.toml"))
    with pytest.raises(RunError, match="with other arms; look at them apart"):
        gather([sweeps / "floor", other.root])


def test_mistakes_are_named(studies: tuple[Study, ...], sweeps: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a sweep's own directory; choose another"):
        write_report(studies, sweeps / "main")
    with pytest.raises(RunError, match="holds no sweep; check the path"):
        gather([tmp_path])
