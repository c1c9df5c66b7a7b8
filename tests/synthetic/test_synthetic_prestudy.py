"""The whole pre-study: the calibrated column, the predicted structure, its cost, and the report."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from time import process_time

import numpy as np
import pytest

from nograd.errors import ConfigError
from nograd.synthetic import CALIBRATED, Landscape, Row, agrees, prestudy, records, structure, text_table
from nograd.synthetic.calibrate import SEEDS as CALIBRATION_SEEDS
from nograd.synthetic.calibrate import Fit, calibrate, grid
from nograd.synthetic.prestudy import SEEDS
from nograd.synthetic.table6 import ARMS, DELTA_AUC, UNIFORM_AUC


@pytest.fixture(scope="module")
def study() -> tuple[list[Row], float]:
    start = process_time()
    rows = prestudy()
    return rows, process_time() - start


def test_it_is_the_paper_s_design_at_a_bearable_cost(study: tuple[list[Row], float]) -> None:
    rows, seconds = study
    assert [(row.regime.name, row.arm) for row in rows] == list(product(UNIFORM_AUC, ARMS))
    assert all(list(row.auc) == list(range(1, 11)) for row in rows)
    assert seconds < 20


def test_uniform_lands_on_the_paper_s_column_under_seeds_that_calibration_never_saw(
    study: tuple[list[Row], float],
) -> None:
    assert not set(SEEDS) & set(CALIBRATION_SEEDS)
    for row in study[0]:
        if row.arm == "uniform":
            assert row.value == pytest.approx(UNIFORM_AUC[row.regime.name], abs=0.03)
            assert agrees(row) is True


def test_the_predicted_structure(study: tuple[list[Row], float]) -> None:
    """What holds here. That concentration costs nothing in the wide regimes, as in the paper, does not."""
    statements = {statement.text: statement.holds for statement in structure(study[0])}
    assert statements == {
        "oracle is nowhere ahead of uniform by more than 0.02": True,
        "soft is nowhere ahead of uniform by more than 0.02": True,
        "hard and random are significantly behind in the tight regimes": True,
        "random is the worst arm in every tight regime": True,
        "hard and random are within ±0.02 of uniform in the wide regimes": False,
    }


def test_a_statement_whose_arms_were_not_run_is_left_out(study: tuple[list[Row], float]) -> None:
    without_random = [row for row in study[0] if row.arm != "random"]
    assert [statement.text.split()[0] for statement in structure(without_random)] == ["oracle", "soft"]
    other = {"hard": "random", "random": "hard"}
    swapped = [replace(row, arm=other.get(row.arm, row.arm)) for row in study[0]]
    assert not next(s.holds for s in structure(swapped) if s.text.startswith("random is the worst"))


def test_contrasts_are_paired_with_uniform_of_the_same_regime(study: tuple[list[Row], float]) -> None:
    control: dict[int, float] = {}
    for row in study[0]:
        control = row.auc if row.arm == "uniform" else control
        if row.contrast is not None:
            differences = [row.auc[seed] - control[seed] for seed in SEEDS]
            assert row.value == pytest.approx(np.mean(differences), abs=1e-12)
            assert row.published == DELTA_AUC[row.regime.name][row.arm]


def test_the_report_shows_every_number_beside_the_paper_s(study: tuple[list[Row], float]) -> None:
    rows = study[0]
    text = text_table(rows)
    assert max(map(len, text.splitlines())) <= 120
    for row, line in zip(rows, text.splitlines()[1:], strict=False):
        numbers = re.findall(r"[+-]?\d\.\d{3}", line)
        assert float(numbers[0]) == pytest.approx(row.value, abs=0.000501)
        assert float(numbers[1]) == row.published
        assert (" yes" in line) == agrees(row)
        assert ("*" in line) == row.significant
    agreeing = sum(agrees(row) is True for row in rows if row.arm != "uniform")
    assert f"{agreeing} of 16 predicted" in text


def test_records_are_tidy(study: tuple[list[Row], float]) -> None:
    table = records(study[0])
    assert len(table) == 4 * 5 * 10
    assert all(line["delta"] == 0 for line in table if line["arm"] == "uniform")
    assert {line["arm"] for line in table} == set(ARMS)


def test_other_arms_have_no_published_number() -> None:
    called = []
    rows = prestudy(
        ["hard:floor=1"],
        ["nonstationary_wide"],
        range(1, 4),
        generations=5,
        on_arm=lambda regime, arm: called.append((regime.name, arm)),
    )
    assert called == [("nonstationary_wide", "uniform"), ("nonstationary_wide", "hard:floor=1")]
    assert rows[1].published is None
    assert agrees(rows[1]) is None
    assert structure(rows) == []
    assert "0 of 0" in text_table(rows)


def test_the_worst_regime_ranks_the_fits() -> None:
    close = {name: auc + 0.01 for name, auc in UNIFORM_AUC.items()}
    off_once = {**UNIFORM_AUC, "nonstationary_wide": 0.9}
    assert Fit(CALIBRATED, close).worst == pytest.approx(0.01)
    assert Fit(CALIBRATED, off_once).worst == pytest.approx(0.079)


def test_the_calibrated_constants_beat_a_neighbour_on_the_grid() -> None:
    points = list(grid())
    neighbour = Landscape(3.5, 2.5, 1.0)
    assert {CALIBRATED, neighbour} <= set(points)
    best, second = calibrate([neighbour, CALIBRATED])
    assert best.landscape == CALIBRATED
    assert best.worst < 0.01 < second.worst


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": [1]}, "two or more distinct seeds"),
        ({"seeds": [1, 1]}, "two or more distinct seeds"),
        ({"generations": 0}, "generations must be 1 or more"),
        ({"arms": ["hrad"]}, "did you mean 'hard'"),
        ({"regimes": ["tight"]}, "unknown regime 'tight'"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        prestudy(**arguments)  # type: ignore[arg-type]
