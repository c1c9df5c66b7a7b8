"""Whole pairs from shares: sums, bounds, ties, rotation."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.search.apportion import deal, largest_remainder

WEIGHTS = st.lists(st.floats(0, 1e3), min_size=1, max_size=8).filter(lambda weights: sum(weights) > 1e-3)


@given(st.integers(0, 40), WEIGHTS)
@settings(deadline=None)
def test_counts_sum_and_stay_within_one_of_the_quota(pairs: int, weights: list[float]) -> None:
    shares = np.array(weights)
    counts = largest_remainder(pairs, shares)
    assert counts.sum() == pairs
    assert counts.dtype == np.int64
    assert (np.abs(counts - pairs * shares / shares.sum()) < 1 + 1e-9).all()
    assert (counts >= 0).all()


@given(st.integers(0, 40), WEIGHTS)
@settings(deadline=None)
def test_more_weight_never_gets_fewer(pairs: int, weights: list[float]) -> None:
    counts = largest_remainder(pairs, np.array(weights))
    order = np.argsort(weights, kind="stable")
    assert (np.diff(counts[order])[np.diff(np.array(weights)[order]) > 1e-6] >= 0).all()


@given(st.integers(0, 40), st.integers(1, 8))
@settings(deadline=None)
def test_ties_go_to_the_lower_index(pairs: int, modules: int) -> None:
    counts = largest_remainder(pairs, np.full(modules, 0.1))
    assert counts.tolist() == sorted(counts.tolist(), reverse=True)


def test_known_split() -> None:
    np.testing.assert_array_equal(largest_remainder(7, np.array([0.5, 0.3, 0.2])), [4, 2, 1])
    np.testing.assert_array_equal(largest_remainder(4, np.array([0.0, 1.0, 0.0])), [0, 4, 0])


@given(st.integers(0, 9), st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True))
@settings(deadline=None)
def test_dealing_on_is_fair_over_a_cycle_and_nearly_fair_always(pairs: int, targets: list[int]) -> None:
    hands = [deal(pairs, targets, turn * pairs, modules=10) for turn in range(len(targets))]
    assert all(hand.sum() == pairs for hand in hands)
    assert all(np.ptp(hand[targets]) <= 1 for hand in hands)
    np.testing.assert_array_equal(np.sum(hands, axis=0)[targets], pairs)


def test_dealing_starts_with_the_first_target() -> None:
    np.testing.assert_array_equal(deal(2, [1, 3], 0, 4), [0, 1, 0, 1])
    np.testing.assert_array_equal(deal(1, [1, 3], 1, 4), [0, 0, 0, 1])
