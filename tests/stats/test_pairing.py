"""Pairing by seed: who is dropped and named, and what counts as zero."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.errors import ConfigError
from nograd.stats import DroppedSeed, compare, difference_in_differences, pair

finite = st.floats(-1e6, 1e6)
arms = st.dictionaries(st.integers(0, 30), finite, max_size=12)


def test_missing_and_non_finite_seeds_are_dropped_and_named():
    paired = pair({1: 0.5, 2: math.nan, 3: 0.7, 9: 1.0}, {1: 0.25, 2: 0.1, 3: math.inf, 4: 0.0})
    assert paired.seeds == (1,)
    assert paired.differences.tolist() == [0.25]
    assert paired.dropped == (
        DroppedSeed(2, "treatment is nan"),
        DroppedSeed(3, "control is inf"),
        DroppedSeed(4, "missing in treatment"),
        DroppedSeed(9, "missing in control"),
    )


@given(arms, arms)
@settings(deadline=None)
def test_every_seed_is_either_paired_or_named(treatment, control):
    paired = pair(treatment, control)
    assert set(paired.seeds) == set(treatment) & set(control)
    assert {d.seed for d in paired.dropped} == set(treatment) ^ set(control)
    backward = pair(control, treatment)
    assert backward.seeds == paired.seeds
    np.testing.assert_array_equal(backward.differences, -paired.differences)


def test_order_of_the_mapping_does_not_matter():
    a, b = {3: 1.0, 1: 2.0, 2: 4.0}, {2: 1.0, 3: 0.0, 1: 1.0}
    assert pair(a, b).seeds == (1, 2, 3)
    assert pair(a, b).differences.tolist() == [1.0, 3.0, 1.0]


def test_a_difference_within_rounding_is_zero():
    contrast = compare([0.1 + 0.2, 0.5], [0.3, 0.4])
    assert contrast.differences[0] == 0.0
    assert (contrast.negative, contrast.positive, contrast.n) == (0, 1, 2)


def test_sequences_pair_by_position_and_must_match_in_length():
    assert pair(np.array([1.0, 2.0]), [0.5, 0.5]).seeds == (0, 1)
    with pytest.raises(ConfigError, match="'treatment': 2, 'control': 1"):
        pair([1.0, 2.0], [1.0])


def test_nothing_in_common_leaves_an_empty_contrast_with_reasons():
    contrast = compare({1: 0.5}, {2: 0.5})
    assert (contrast.estimate, contrast.sd, contrast.p, contrast.n) == (None, None, None, 0)
    assert contrast.test.reason == contrast.interval.reason.replace("2 seeds", "1 seeds")
    assert [d.seed for d in contrast.dropped] == [1, 2]


def test_difference_in_differences_is_the_change_of_the_contrast():
    floored, plain, uniform = {1: 0.9, 2: 0.8, 3: 0.85}, {1: 0.7, 2: 0.72, 3: 0.6}, {1: 0.8, 2: 0.8, 3: 0.8}
    did = difference_in_differences(floored, uniform, plain, uniform)
    plainly = compare(floored, plain)
    np.testing.assert_allclose(did.differences, plainly.differences)
    assert did.p == plainly.p == 0.25
    assert (did.interval.low, did.interval.high) == pytest.approx(
        (plainly.interval.low, plainly.interval.high)
    )


def test_difference_in_differences_names_the_arm_that_lacks_a_seed():
    did = difference_in_differences({1: 1.0, 2: 1.0}, {1: 0.0, 2: 0.0}, {1: 0.5}, {1: 0.0, 2: math.nan})
    assert did.dropped == (DroppedSeed(2, "missing in baseline treatment, baseline control is nan"),)
    assert did.estimate == 0.5
