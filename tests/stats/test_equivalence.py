"""TOST, t intervals, bootstrap, Holm and power against statsmodels, scipy, simulation and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW, ttost_paired

from nograd.errors import ConfigError
from nograd.stats import (
    bootstrap_mean,
    compare,
    holm,
    seeds_for_equivalence,
    t_interval,
    t_interval_of,
    tost,
    tost_of,
    tost_power,
)

samples = st.lists(st.integers(-400, 400).map(lambda k: k / 10_000), min_size=2, max_size=20)
varied = samples.filter(lambda s: len(set(s)) > 1)


@pytest.mark.oracle
@given(varied, st.sampled_from([0.005, 0.02, 0.1]))
@settings(deadline=None)
def test_tost_agrees_with_statsmodels(differences, margin):
    array = np.array(differences)
    _, lower, upper = ttost_paired(array, np.zeros_like(array), -margin, margin)
    ours = tost(differences, margin)
    assert ours.p_lower == pytest.approx(lower[1], abs=1e-12)
    assert ours.p_upper == pytest.approx(upper[1], abs=1e-12)


@pytest.mark.oracle
@given(varied, st.sampled_from([0.5, 0.9, 0.95]))
@settings(deadline=None)
def test_interval_agrees_with_statsmodels(differences, confidence):
    low, high = DescrStatsW(differences).tconfint_mean(1 - confidence)
    ours = t_interval(differences, confidence)
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-12)


@given(varied)
@settings(deadline=None)
def test_certified_at_five_percent_is_the_ninety_percent_interval_inside_the_margin(differences):
    interval = t_interval(differences, 0.90)
    assert tost(differences).certified() == (interval.low > -0.02 and interval.high < 0.02)


@given(samples)
@settings(deadline=None)
def test_reflection_swaps_the_two_sides(differences):
    there, back = tost(differences), tost([-d for d in differences])
    assert (there.p_lower, there.p_upper) == pytest.approx((back.p_upper, back.p_lower), abs=1e-12)


def test_floored_arm_of_table_2():
    result = tost_of(-0.0056, 0.0124, 6)
    assert round(result.p_upper, 3) == 0.002
    assert round(result.p_lower, 3) == 0.018
    assert result.certified() is True


@pytest.mark.parametrize(
    ("value", "p_lower", "p_upper"),
    [(0.0, 0, 0), (0.019, 0, 0), (0.02, 0, 1), (-0.02, 1, 0), (0.03, 0, 1), (-0.5, 1, 0)],
)
def test_zero_variance_is_decided_by_the_margin(value, p_lower, p_upper):
    result = compare([0.5 + value] * 3, [0.5] * 3)
    assert result.sd == 0.0
    assert (result.equivalence.p_lower, result.equivalence.p_upper) == (p_lower, p_upper)
    assert (result.interval.low, result.interval.high) == (result.estimate, result.estimate)


def test_a_spread_of_pure_rounding_is_zero_variance():
    assert np.std([0.1] * 3, ddof=1) > 0.0
    on_the_margin = tost([0.1] * 3, margin=0.1)
    assert (on_the_margin.p_lower, on_the_margin.p_upper) == (0.0, 1.0)
    assert compare({1: 0.1, 2: 0.1, 3: 0.3 - 0.2}, {1: 0.0, 2: 0.0, 3: 0.0}).sd == 0.0


@pytest.mark.parametrize("differences", [[], [0.1], [0.1, math.nan], [math.inf, 0.0]])
def test_undefined_is_none_with_a_reason(differences):
    for result in (t_interval(differences), bootstrap_mean(differences)):
        assert (result.low, result.high) == (None, None)
        assert result.reason
    equivalence = tost(differences)
    assert (equivalence.p, equivalence.certified()) == (None, None)
    assert equivalence.reason


@pytest.mark.parametrize(
    ("mean", "sd", "n"), [(0.0, 0.1, 1), (math.nan, 0.1, 5), (0.0, -1.0, 5), (0.0, math.inf, 5)]
)
def test_undefined_summaries_say_why(mean, sd, n):
    assert tost_of(mean, sd, n).reason == t_interval_of(mean, sd, n).reason is not None


@pytest.mark.parametrize("margin", [0.0, -0.02, math.nan, math.inf])
def test_a_margin_must_be_positive(margin):
    with pytest.raises(ConfigError, match="margin must be positive"):
        tost([0.0, 0.1], margin)


def test_a_confidence_is_a_share():
    with pytest.raises(ConfigError, match="got 95"):
        t_interval([0.0, 0.1], 95)


def test_bootstrap_is_keyed_and_near_the_normal_interval():
    values = np.random.default_rng(5).normal(0.3, 1.0, 200)
    result = bootstrap_mean(values, seed=1)
    assert result == bootstrap_mean(values, seed=1)
    assert result != bootstrap_mean(values, seed=2)
    half = 1.96 * values.std(ddof=1) / math.sqrt(200)
    assert (result.low, result.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.01)
    assert bootstrap_mean([0.25] * 4).low == bootstrap_mean([0.25] * 4).high == 0.25


def test_holm_by_hand_with_an_undefined_test():
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx((0.03, None, 0.06, 0.06))
    assert holm([]) == ()
    assert holm([None]) == (None,)
    with pytest.raises(ConfigError, match="got nan"):
        holm([math.nan])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
@settings(deadline=None, max_examples=20)
def test_holm_is_between_raw_and_bonferroni_and_keeps_order(p_values):
    adjusted = holm(p_values)
    for raw, value in zip(p_values, adjusted, strict=True):
        assert raw - 1e-12 <= value <= min(1.0, raw * len(p_values)) + 1e-12
    by_raw = [value for _, value in sorted(zip(p_values, adjusted, strict=True))]
    assert by_raw == sorted(by_raw)


@pytest.mark.parametrize(
    ("n", "sd", "mean"), [(6, 0.0124, 0.0), (8, 0.025, -0.005), (20, 0.03, 0.0), (3, 0.02, 0.01)]
)
def test_power_agrees_with_simulation(n, sd, mean):
    runs = np.random.default_rng(n).normal(mean, sd, size=(40_000, n))
    error = runs.std(axis=1, ddof=1) / math.sqrt(n)
    certified = np.abs(runs.mean(axis=1)) + stats.t.ppf(0.95, n - 1) * error < 0.02
    assert tost_power(n, sd, mean=mean) == pytest.approx(certified.mean(), abs=0.01)


@given(st.floats(0.001, 0.2), st.floats(-0.015, 0.015), st.sampled_from([0.5, 0.8, 0.95]))
@settings(deadline=None, max_examples=12)
def test_needed_seeds_are_the_fewest(sd, mean, power):
    needed = seeds_for_equivalence(sd, mean=mean, power=power)
    assert needed.power >= power
    assert needed.power == tost_power(needed.n, sd, mean=mean)
    if needed.n > 2:
        assert tost_power(needed.n - 1, sd, mean=mean) < power


def test_power_at_the_edges():
    assert seeds_for_equivalence(0.0).n == 2
    outside = seeds_for_equivalence(0.01, mean=0.02)
    assert (outside.n, outside.reason) == (None, "a true mean of 0.02 is not inside ±0.02")
    assert seeds_for_equivalence(100.0).reason == "more than 1000000 seeds"
    assert tost_power(4000, 0.05) == pytest.approx(1.0)
    with pytest.raises(ConfigError, match="at least 2 seeds, got 1"):
        tost_power(1, 0.1)
    with pytest.raises(ConfigError, match="sd=-1"):
        seeds_for_equivalence(-1.0)
