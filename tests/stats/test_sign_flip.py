"""The sign-flip test against enumeration, scipy and closed forms."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from nograd.stats import sign_flip, smallest_p

tenths = st.integers(-20, 20).map(lambda k: k / 10)
samples = st.lists(tenths, min_size=1, max_size=9)


def enumerated_p(tens: list[int]) -> float:
    """p in exact integer arithmetic."""
    observed = abs(sum(tens))
    extreme = [
        abs(sum(s * d for s, d in zip(signs, tens, strict=True))) >= observed
        for signs in itertools.product((1, -1), repeat=len(tens))
    ]
    return sum(extreme) / len(extreme)


@given(samples)
@settings(deadline=None)
def test_equals_exact_integer_enumeration_ties_included(differences):
    assert sign_flip(differences).p == enumerated_p([round(10 * d) for d in differences])


def test_ties_by_float_rounding_count():
    assert sign_flip([0.2, 0.2, 0.2, -0.2, -0.2]).p == 1.0
    assert sign_flip([1e-9 * d for d in (0.2, 0.2, 0.2, -0.2, -0.2)]).p == 1.0
    assert sign_flip([0.1 + 0.2, -0.3, 0.3]).p == 1.0


@given(samples, st.floats(1e-6, 1e6), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_invariant_to_scale_order_and_reflection(differences, scale, random):
    p = sign_flip(differences).p
    shuffled = random.sample(differences, len(differences))
    assert sign_flip([scale * d for d in shuffled]).p == p
    assert sign_flip([-d for d in differences]).p == p


@pytest.mark.oracle
@given(st.integers(0, 10_000), st.integers(2, 10))
@settings(deadline=None, max_examples=20)
def test_agrees_with_scipy_on_continuous_data(seed, n):
    differences = np.random.default_rng(seed).normal(0.3, 1.0, n)
    oracle = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(differences).p == pytest.approx(oracle.pvalue, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 8, 10, 20])
def test_all_signs_alike_reach_the_smallest_p(n):
    assert sign_flip(np.linspace(0.1, 0.9, n)).p == smallest_p(n) == 2 / 2**n


def test_floors_of_the_paper():
    assert (smallest_p(6), smallest_p(8)) == (0.03125, 0.0078125)


def test_zero_differences_stay_in_the_sample():
    result = sign_flip([0.0, 0.0, 0.5])
    assert (result.n, result.p) == (3, 1.0)
    assert sign_flip([0.0] * 4).p == 1.0


def test_twenty_seeds_are_exact_and_quick():
    differences = np.random.default_rng(1).normal(0.2, 1.0, 20)
    start = time.perf_counter()
    result = sign_flip(differences)
    assert time.perf_counter() - start < 1.0
    assert result.method == "exact sign-flip"
    assert (result.p * 2**20) % 2 == 0


def test_monte_carlo_is_labelled_keyed_and_near_the_truth():
    differences = np.random.default_rng(2).normal(0.25, 1.0, 40)
    result = sign_flip(differences, draws=50_000, seed=3)
    assert result.method == "Monte Carlo sign-flip (50000 draws, seed 3)"
    assert result == sign_flip(differences, draws=50_000, seed=3)
    assert result.p != sign_flip(differences, draws=50_000, seed=4).p
    normal = 2 * stats.norm.sf(abs(differences.sum()) / math.sqrt((differences**2).sum()))
    assert result.p == pytest.approx(normal, abs=0.015)


def test_monte_carlo_never_reports_zero():
    assert sign_flip(np.ones(60), draws=999).p == 1 / 1000


@pytest.mark.parametrize(
    ("differences", "reason"),
    [
        ([], "needs 1 seeds, got 0"),
        ([0.1, math.nan, 0.2], "1 of 3 values are not finite"),
        ([math.inf, -math.inf], "2 of 2 values are not finite"),
        ([1e200, 1.0], "a value exceeds 1e+100 in size"),
    ],
)
def test_undefined_says_why(differences, reason):
    result = sign_flip(differences)
    assert (result.p, result.reason) == (None, reason)
