"""The gain-estimating rule: probabilities, measurement, and that it finds the module that pays."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from search_worlds import evaluate, pairs, run, settings_for

from nograd.search.bandit import probabilities, realised_gains, update_gain
from nograd.search.outcome import read_outcome

GAINS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6)


@given(GAINS, st.floats(0.01, 1))
@settings(deadline=None)
def test_probabilities_explore_favour_gain_and_ignore_the_unit(gain: list[float], explore: float) -> None:
    gains = np.array(gain)
    chances = probabilities(gains, explore)
    assert abs(chances.sum() - 1) < 1e-12
    assert (chances >= explore / len(gains) * (1 - 1e-12)).all()
    order = np.argsort(gains)
    assert (np.diff(chances[order]) >= -1e-12).all()
    np.testing.assert_array_equal(probabilities(4 * gains, explore), chances)


def test_without_any_gain_all_are_equal_and_explore_1_is_blind() -> None:
    np.testing.assert_allclose(probabilities(np.zeros(4), 0.2), 0.25)
    np.testing.assert_allclose(probabilities(np.array([5.0, 0.0, 0.0, 0.0]), 1.0), 0.25)


def test_realised_gain_is_the_better_side_above_the_center() -> None:
    values = iter([1.0, 3.0, 0.0, 0.5, 0.2, np.inf, 9.0])
    outcome = read_outcome(evaluate(np.zeros((7, 1, 1), np.float32), lambda _: next(values)))
    assert outcome.dropped == (2,)
    np.testing.assert_allclose(realised_gains(outcome, np.array([0, 0]), 2), [(2 - 0.5) / 2, np.nan])
    np.testing.assert_allclose(realised_gains(outcome, np.array([1, 0]), 2), [-0.5, 2])


def test_a_center_without_fitness_measures_nothing() -> None:
    values = iter([np.nan, 3.0, 0.0])
    outcome = read_outcome(evaluate(np.zeros((3, 1, 1), np.float32), lambda _: next(values)))
    assert np.isnan(realised_gains(outcome, np.array([0]), 2)).all()


def test_unmeasured_modules_keep_their_gain() -> None:
    updated = update_gain(np.array([1.0, 2.0]), np.array([np.nan, 4.0]), 0.25)
    np.testing.assert_array_equal(updated, [1.0, 2.5])


def test_pairs_move_to_the_module_that_gains() -> None:
    def only_the_third(theta: NDArray[np.float32]) -> float:
        return float(theta[2].sum())

    history = run(settings_for("bandit", pairs=8), fitness=only_the_third)
    shares = pairs(history)[10:].mean(axis=0) / 8
    assert shares[2] > 0.6
    assert (shares > 0).all()
    state = history[-1][0]
    assert state.gain[2] > 0
    np.testing.assert_array_equal(state.gain[[0, 1, 3]], 0)
