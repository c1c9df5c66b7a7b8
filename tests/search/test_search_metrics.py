"""Summaries of a run, on numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nograd.search import metrics


def test_curve_summaries() -> None:
    success = [0.0, 0.5, 0.5, 0.25, 0.75, 1.0, 1.0]
    assert metrics.auc(success) == pytest.approx(4.0 / 7)
    assert metrics.final(success) == 1.0
    assert metrics.last_five(success) == pytest.approx(3.5 / 5)
    assert metrics.last_five([0.25, 0.75]) == 0.5


def test_starvation_and_movement_are_per_module() -> None:
    np.testing.assert_allclose(metrics.starvation([[4, 0], [0, 4], [2, 2], [4, 0]]), [0.25, 0.5])
    np.testing.assert_allclose(metrics.movement([[0.5, 0.0], [0.25, 0.1]]), [0.75, 0.1])


@pytest.mark.parametrize("call", [metrics.auc, metrics.final, metrics.last_five])
def test_an_empty_curve_has_no_summary(call: object) -> None:
    with pytest.raises(ValueError, match="one value per generation"):
        call([])  # type: ignore[operator]


def test_tables_need_generations() -> None:
    with pytest.raises(ValueError, match=r"\[generations, modules\]"):
        metrics.starvation(np.zeros((0, 4)))
    with pytest.raises(ValueError, match=r"\[generations, modules\]"):
        metrics.movement([1.0, 2.0])
