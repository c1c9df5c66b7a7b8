"""The transforms of a step, each against its formula."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from nograd.search import step
from nograd.search.credit import update_credit
from nograd.search.streams import stream

STEPS = arrays(np.float64, (4, 3), elements=st.floats(-1e3, 1e3))
PAIRS = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


@given(STEPS, st.lists(st.floats(1e-3, 1e3), min_size=4, max_size=4))
@settings(deadline=None)
def test_trust_region_bounds_keeps_direction_and_passes_short_steps(
    raw: NDArray[np.float64], clips: list[float]
) -> None:
    clipped = step.trust_region(raw, np.array(clips))
    lengths = np.linalg.norm(raw, axis=1)
    assert (step.norms(clipped) <= np.array(clips) * (1 + 1e-12)).all()
    for before, after, length, clip in zip(raw, clipped, lengths, clips, strict=True):
        if length < clip * (1 - 1e-12):
            np.testing.assert_array_equal(after, before)
        else:
            np.testing.assert_allclose(after * length, before * clip, rtol=1e-9, atol=1e-9)


@given(STEPS)
@settings(deadline=None)
def test_an_infinite_clip_is_no_clip(raw: NDArray[np.float64]) -> None:
    np.testing.assert_array_equal(step.trust_region(raw, np.full(4, np.inf)), raw)


@given(PAIRS)
@settings(deadline=None)
def test_ipw_weights_are_inverse_shares(pairs: list[int]) -> None:
    counts = np.array(pairs)
    weights = step.ipw_weights(counts)
    np.testing.assert_allclose((weights * counts).sum(), counts.sum() / len(pairs) * (counts > 0).sum())
    assert (weights[counts == 0] == 1).all()


@given(st.integers(1, 30), st.integers(1, 30))
@settings(deadline=None)
def test_ipw_weights_are_exactly_1_for_an_equal_split(modules: int, each: int) -> None:
    np.testing.assert_array_equal(step.ipw_weights(np.full(modules, each)), 1.0)


def test_gradient_of_one_pair_by_hand() -> None:
    epsilon = np.array([[1.0, -2.0]], np.float32)
    plus, minus, module = np.array([0.9]), np.array([0.3]), np.array([1])
    g = step.gradient(epsilon, plus, minus, module, np.array([0.3, 0.5]))
    np.testing.assert_allclose(g, np.array([[0.0, 0.0], [0.6, -1.2]]))


@given(st.integers(0, 1000), st.integers(1, 12))
@settings(deadline=None)
def test_gradient_is_the_average_directional_derivative_of_a_quadratic(seed: int, count: int) -> None:
    """Mirrored differences of a quadratic are exact: gₘ = mean over its pairs of (∇F·ε) ε."""
    draws = stream(seed, "quadratic")
    dim, modules = 5, draws.integers(0, 3, count)
    matrix, slope, theta = draws.normal(size=(dim, dim)), draws.normal(size=dim), draws.normal(size=dim)
    epsilon = draws.normal(size=(count, dim)).astype(np.float32)
    sigma = np.array([0.1, 0.3, 0.9])

    def fitness(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.einsum("ki,ij,kj->k", x, matrix, x) + x @ slope)

    shift = sigma[modules, None] * epsilon.astype(np.float64)
    measured = step.gradient(epsilon, fitness(theta + shift), fitness(theta - shift), modules, sigma)

    derivative = (matrix + matrix.T) @ theta + slope
    for module in range(3):
        own = epsilon[modules == module].astype(np.float64)
        expected = np.mean([float(derivative @ e) * e for e in own], axis=0) if len(own) else np.zeros(dim)
        np.testing.assert_allclose(measured[module], expected, rtol=1e-9, atol=1e-9)


def test_gradient_is_unbiased() -> None:
    slope = np.array([0.5, -1.0, 2.0])
    epsilon = stream(0, "unbiased").normal(size=(20000, 3)).astype(np.float32)
    ahead = epsilon.astype(np.float64) @ slope
    g = step.gradient(epsilon, ahead, -ahead, np.zeros(20000, np.int64), np.ones(1))
    np.testing.assert_allclose(g[0], slope, atol=0.08)


@given(st.floats(0, 1), st.integers(0, 3))
@settings(deadline=None)
def test_credit_stays_on_the_simplex_and_moves_to_the_blamed(rate: float, blamed: int) -> None:
    credit, blame = np.array([0.1, 0.2, 0.3, 0.4]), np.eye(4)[blamed]
    after = update_credit(credit, blame, rate)
    assert abs(after.sum() - 1) < 1e-12
    np.testing.assert_allclose(after[blamed], (1 - rate) * credit[blamed] + rate)
    np.testing.assert_array_equal(update_credit(credit, None, rate), credit)
