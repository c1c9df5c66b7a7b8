"""Lines and the starvation regression."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.errors import ConfigError
from nograd.stats import DroppedSeed, fit_line, fit_starvation

points = st.lists(
    st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=12, unique_by=lambda p: p[0]
)


@pytest.mark.oracle
@given(points)
@settings(deadline=None)
def test_line_agrees_with_statsmodels(pairs):
    x, y = np.array(pairs, dtype=float).T
    line = fit_line(x, y)
    fit = sm.OLS(y, sm.add_constant(x, has_constant="add")).fit()
    assert (line.intercept, line.slope) == pytest.approx(tuple(fit.params), abs=1e-9)
    if line.r2 is not None:
        assert line.r2 == pytest.approx(fit.rsquared, abs=1e-9)
    if line.p is not None and len(pairs) > 2:
        low, high = fit.conf_int()[1]
        assert (line.low, line.high) == pytest.approx((low, high), rel=1e-6, abs=1e-9)
        assert line.p == pytest.approx(fit.pvalues[1], rel=1e-6, abs=1e-9)


def test_exact_line_has_no_p():
    line = fit_line([0, 1, 2, 3], [1, 3, 5, 7])
    assert (line.slope, line.intercept, line.r2) == pytest.approx((2, 1, 1))
    assert (line.p, line.low) == (None, None)
    assert "points lie on the line" in line.reason
    assert line.at(10) == pytest.approx(21)


def test_constant_y_has_no_r_squared():
    line = fit_line([0, 1, 2], [0.3, 0.3, 0.3])
    assert (line.slope, line.intercept, line.r2, line.p) == (0.0, 0.3, None, None)
    assert "R² is undefined" in line.reason


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([], [], "needs 2 points, got 0"),
        ([1], [1], "needs 2 points, got 1"),
        ([1, 1], [0, 1], "all x are equal"),
        ([0, math.nan], [0, 1], "1 of 2 values are not finite"),
        ([0, 1], [0, math.inf], "1 of 2 values are not finite"),
    ],
)
def test_no_line_says_why(x, y, reason):
    line = fit_line(x, y)
    assert (line.slope, line.reason) == (None, reason)
    with pytest.raises(ConfigError, match="no fitted line"):
        line.at(0.0)


def test_unequal_lengths_are_refused():
    with pytest.raises(ConfigError, match="got 2 and 3"):
        fit_line([1, 2], [1, 2, 3])


def _study(slopes):
    rates = {"hard": 0.0, "sparse": 0.5, "random": 0.75}
    delta = {arm: {s: 0.01 * s + k * rate for s, k in slopes.items()} for arm, rate in rates.items()}
    return rates, delta


def test_within_seed_slopes_are_recovered_and_average_to_the_line():
    slopes = {1: -0.1, 2: -0.05, 3: -0.2, 4: -0.08}
    fit = fit_starvation(*_study(slopes))
    assert fit.slopes == pytest.approx(slopes)
    assert fit.line.slope == pytest.approx(np.mean(list(slopes.values())))
    assert fit.test.p == 2 / 2**4
    assert fit.interval.low < fit.line.slope < fit.interval.high
    assert -0.2 <= fit.bootstrap.low < fit.line.slope < fit.bootstrap.high <= -0.05


def test_seeds_without_every_arm_are_dropped_and_named():
    rates, delta = _study({1: -0.1, 2: -0.2, 3: -0.3})
    del delta["sparse"][2]
    delta["random"][3] = math.nan
    fit = fit_starvation(rates, delta)
    assert list(fit.slopes) == [1]
    assert fit.dropped == (DroppedSeed(2, "missing in sparse"), DroppedSeed(3, "random is nan"))
    assert fit.interval.reason == "needs 2 seeds, got 1"


@pytest.mark.parametrize(
    ("rates", "delta"),
    [
        ({"a": 0.0, "b": 1.0}, {"a": {1: 0.1}, "b": {2: 0.1}}),
        ({"a": 0.5, "b": 0.5}, {"a": {1: 0.1}, "b": {1: 0.2}}),
        ({}, {}),
    ],
)
def test_no_fit_is_undefined_throughout(rates, delta):
    fit = fit_starvation(rates, delta)
    assert (fit.line.slope, fit.test.p, fit.interval.low, fit.bootstrap.low) == (None, None, None, None)
    assert fit.line.reason
    assert fit.slopes == {}


def test_arms_must_match():
    with pytest.raises(ConfigError, match=r"\['b', 'c'\]"):
        fit_starvation({"a": 0.0, "b": 0.5}, {"a": {1: 0.0}, "c": {1: 0.0}})
