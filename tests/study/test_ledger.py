"""The ledger: hit, miss or not scorable, and whether git shows that the prediction came first."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from study_world import build, write_plan

from nograd.study.ledger import LedgerRow, score
from nograd.study.metrics import Measured
from nograd.study.plan import Criterion
from nograd.study.plan_file import PlanFile, load_plan
from nograd.study.results import Results
from nograd.study.scaling import Scaling
from nograd.study.scoring import overall, score_criterion
from nograd.study.sweep import run_sweep
from nograd.study.sweep_directory import Sweep, create_sweep

PREDICTIONS = """
[[predictions]]
id = "wide"
claim = "Locked differs from uniform by at most 1"
why = "success is a share"
criteria = [{ of = "locked", minus = "uniform", low = -1.0, high = 1.0 }]

[[predictions]]
id = "impossible"
claim = "Locked gains more than 1"
why = "to miss"
criteria = [
  { of = "locked", minus = "uniform", low = 1.5 },
  { of = "locked", minus = "uniform", low = -1.0, high = 1.0 },
]

[[predictions]]
id = "control"
claim = "Whatever comes"
why = "a diagnostic"
scored = false
criteria = [{ metric = "final_success", of = "hard", low = 0.0 }]

[[predictions]]
id = "relay"
claim = "Relay stays"
why = "the vector world does not measure it"
criteria = [{ metric = "relay", of = "hard", low = 0.0 }]
"""
POOLED = """
[[predictions]]
id = "pooled"
claim = "Pooled, hard differs from uniform by at most 1"
why = "success is a share"
criteria = [{ of = "hard", minus = "uniform", pooled = true, low = -1.0, high = 1.0 }]
"""
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
TOMORROW = datetime.now(UTC) + timedelta(days=1)


def results_of(**aucs: list[float]) -> Results:
    return Results(
        {
            label: {seed: Measured(("a",), np.array([value]), {}) for seed, value in enumerate(values)}
            for label, values in aucs.items()
        },
        {},
    )


def git(folder: Path, *arguments: str, at: datetime = YESTERDAY) -> None:
    stamp = at.isoformat()
    environment = os.environ | {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
    identity = ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, env=environment)


def committed(folder: Path, text: str, at: datetime = YESTERDAY) -> PlanFile:
    """A plan of two seeds and three generations, committed in a repository of its own at that time."""
    folder.mkdir(exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    file = write_plan(folder, text, generations=3)
    git(folder, "add", "test.toml")
    git(folder, "commit", "-q", "-m", "plan", at=at)
    return file


def swept(root: Path, file: PlanFile, scaling: Scaling | None = None) -> Sweep:
    sweep = create_sweep(root, file, scaling)
    assert run_sweep(sweep, build=build).finished
    return sweep


def by_id(rows: tuple[LedgerRow, ...]) -> dict[str, LedgerRow]:
    return {row.prediction.id: row for row in rows}


@pytest.mark.parametrize(
    ("criterion", "verdict", "value"),
    [
        ({"of": "b", "low": 0.5, "high": 0.5}, "hit", 0.5),
        ({"of": "b", "low": 0.51}, "miss", 0.5),
        ({"of": "b", "minus": "a", "low": 0.25, "high": 0.25}, "hit", 0.25),
        ({"of": "b", "minus": "a", "high": 0.2}, "miss", 0.25),
        ({"of": "b", "minus": "a", "statistic": "p", "high": 0.25}, "hit", 0.25),
        ({"of": "b", "minus": "a", "statistic": "ci_low", "low": 0.25}, "hit", 0.25),
        ({"of": "b", "minus": "a", "statistic": "ci_high", "high": 0.2}, "miss", 0.25),
        ({"of": "b", "minus": "a", "statistic": "tost_p", "low": 1.0}, "hit", 1.0),
    ],
)
def test_a_number_against_its_interval(criterion: dict[str, object], verdict: str, value: float) -> None:
    results = results_of(a=[0.125, 0.25, 0.375], b=[0.375, 0.5, 0.625])
    scored = score_criterion(Criterion.model_validate(criterion), results)
    assert scored.value == pytest.approx(value)
    assert scored.verdict == verdict
    assert verdict in scored.text


def test_what_cannot_be_scored_says_why() -> None:
    results = results_of(a=[0.1], b=[0.2])
    interval = Criterion(of="b", minus="a", statistic="ci_low", low=0.0)
    assert "ci_low is undefined with 1 seeds" in score_criterion(interval, results).text
    assert "no sweep has the arm 'c'" in score_criterion(Criterion(of="c", low=0.0), results).text
    uneven = results_of(a=[0.1], b=[0.2, 0.3])
    unpaired = score_criterion(Criterion(of="b", minus="a", low=0.0), uneven)
    assert unpaired.verdict == "not scorable"
    assert "seed 1 has no pair (missing in control)" in unpaired.text
    module = score_criterion(Criterion(metric="share:x", of="a", low=0.0), results)
    assert "unknown module" in module.text


def test_one_miss_is_a_miss() -> None:
    results = results_of(a=[0.1, 0.2])
    hit, miss, neither = (
        score_criterion(criterion, results)
        for criterion in (Criterion(of="a", low=0.0), Criterion(of="a", low=1.0), Criterion(of="b", low=0.0))
    )
    assert overall([hit]) == "hit"
    assert overall([hit, neither]) == "not scorable"
    assert overall([hit, neither, miss]) == "miss"


def test_scores_of_a_committed_plan(tmp_path: Path) -> None:
    file = committed(tmp_path / "plans", PREDICTIONS)
    rows = by_id(score([swept(tmp_path / "sweep", file)], file))
    assert {name: row.outcome for name, row in rows.items()} == {
        "wide": "hit",
        "impossible": "miss",
        "control": "not scored",
        "relay": "not scorable",
    }
    assert {row.standing for row in rows.values()} == {"preregistered"}
    assert "relay is undefined for seeds 1-2" in rows["relay"].evidence[0]
    assert "which contains it" in rows["wide"].evidence[-1]


def test_nothing_is_scored_before_all_planned_runs_are_there(tmp_path: Path) -> None:
    file = committed(tmp_path / "plans", PREDICTIONS)
    sweep = create_sweep(tmp_path / "sweep", file)
    row = by_id(score([sweep], file))["wide"]
    assert row.outcome == "not scorable"
    assert "uniform/seed-0001 is missing" in row.evidence[0]
    assert "and 1 more" in row.evidence[0]
    assert by_id(score([], file))["wide"].evidence == ("not scorable, no sweep of plan 'test' was given",)


def test_a_plan_outside_git_proves_nothing(tmp_path: Path) -> None:
    file = write_plan(tmp_path, PREDICTIONS)
    row = by_id(score([create_sweep(tmp_path / "sweep", file)], file))["wide"]
    assert row.standing == "unproven"
    assert "is not in git" in row.evidence[-1]


def test_a_prediction_committed_later_is_descriptive(tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    file = write_plan_only(plans)
    sweep = create_sweep(tmp_path / "sweep", file)
    git(plans, "add", "test.toml")
    git(plans, "commit", "-q", "-m", "late", at=TOMORROW)
    row = by_id(score([sweep], file))["wide"]
    assert row.standing == "descriptive"
    assert "after" in row.evidence[-1]


def write_plan_only(plans: Path) -> PlanFile:
    plans.mkdir()
    git(plans, "init", "-q")
    return write_plan(plans, PREDICTIONS)


def test_a_backdated_commit_is_not_in_what_the_sweep_ran_from(tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    committed(plans, "")
    file = write_plan(plans, PREDICTIONS, generations=3)
    sweep = create_sweep(tmp_path / "sweep", file)
    git(plans, "commit", "-q", "-a", "-m", "backdated", at=YESTERDAY)
    row = by_id(score([sweep], file))["wide"]
    assert row.standing == "descriptive"
    assert "which does not contain it" in row.evidence[-1]


def test_an_uncommitted_prediction_is_unproven(tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    committed(plans, "")
    file = write_plan(plans, PREDICTIONS, generations=3)
    row = by_id(score([create_sweep(tmp_path / "sweep", file)], file))["wide"]
    assert row.standing == "unproven"
    assert "not committed" in row.evidence[-1]


def test_a_bound_moved_after_the_start_is_seen(tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    sweep = create_sweep(tmp_path / "sweep", committed(plans, PREDICTIONS))
    moved = committed(plans, PREDICTIONS.replace("low = 1.5", "low = -1.5"), at=YESTERDAY)
    rows = by_id(score([sweep], moved))
    assert rows["impossible"].standing == "descriptive"
    assert "another wording" in rows["impossible"].evidence[-1]
    assert rows["wide"].standing == "preregistered"


def test_a_prediction_counts_from_its_last_change(tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    file = committed(plans, PREDICTIONS)
    sweep = create_sweep(tmp_path / "sweep", file)
    committed(plans, PREDICTIONS.replace("low = 1.5", "low = 0.5"), at=YESTERDAY + timedelta(hours=1))
    back = committed(plans, PREDICTIONS, at=TOMORROW)
    rows = by_id(score([sweep], back))
    assert rows["impossible"].standing == "descriptive"
    assert rows["wide"].standing == "preregistered"


def test_an_extension_decided_after_the_data_is_descriptive(tmp_path: Path) -> None:
    base = swept(tmp_path / "base", committed(tmp_path / "plans", ""))
    text = (tmp_path / "plans/test.toml").read_text(encoding="utf-8")
    path = tmp_path / "plans/more.toml"
    path.write_text(f'extends = "test"\n{text}{POOLED}'.replace("1-2", "3-4"), encoding="utf-8")
    now = datetime.now(UTC) + timedelta(seconds=1)
    git(tmp_path / "plans", "add", "more.toml", at=now)
    git(tmp_path / "plans", "commit", "-q", "-m", "more", at=now)
    file = load_plan(path)
    more = swept(tmp_path / "more", file)
    alone = by_id(score([more], file))["pooled"]
    assert alone.outcome == "not scorable"
    assert "needs a sweep of plan 'test' beside" in alone.evidence[0]
    row = by_id(score([base, more], file))["pooled"]
    assert row.outcome == "hit"
    assert "(n = 4)" in row.evidence[0]
    assert row.standing == "descriptive"
