"""The landscape: closed forms, smoothness, and what a move of the bottleneck changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.errors import ConfigError
from nograd.synthetic import REGIMES, Landscape, find_regime
from nograd.synthetic.landscape import competence, optimum
from nograd.synthetic.regimes import BOTTLENECKS, MODULES, bottleneck_of_visit

WORLD = Landscape(width=2.0, jump=1.5, slack=0.5)
seeds = st.integers(-5, 2**40)
dims = st.integers(1, 40)


@given(seeds, dims, st.integers(0, 4), st.floats(0, 8))
@settings(deadline=None)
def test_success_depends_on_the_distance_from_the_optimum_only(
    seed: int, dim: int, module: int, distance: float
) -> None:
    module %= len(MODULES)
    peak = optimum(WORLD, seed, 0, dim)
    direction = np.random.default_rng(seed % 2**32).standard_normal(dim)
    theta = peak.copy()
    theta[module] += distance * direction / np.linalg.norm(direction)
    chance = competence(WORLD, theta.astype(np.float32), peak)
    expected = np.ones(len(MODULES))
    expected[module] = math.exp(-(distance**2) / (2 * WORLD.width**2))
    np.testing.assert_allclose(chance, expected, rtol=1e-5, atol=1e-6)


def test_the_slope_is_that_of_the_formula() -> None:
    peak = optimum(WORLD, 3, 0, 8)
    theta = np.zeros((len(MODULES), 8), np.float32)
    bump = np.float32(2**-7)
    ahead, behind = theta.copy(), theta.copy()
    ahead[1, 2] += bump
    behind[1, 2] -= bump
    slope = (competence(WORLD, ahead, peak) - competence(WORLD, behind, peak)) / (2 * float(bump))
    chance = competence(WORLD, theta, peak)
    assert slope[1] == pytest.approx(chance[1] * peak[1, 2] / WORLD.width**2, rel=1e-4)
    assert (slope[[0, 2, 3]] == 0).all()


@given(seeds, dims, st.integers(1, 6))
@settings(deadline=None)
def test_a_move_displaces_the_new_bottleneck_s_optimum_by_a_jump(seed: int, dim: int, visit: int) -> None:
    moved = optimum(WORLD, seed, visit, dim) - optimum(WORLD, seed, visit - 1, dim)
    lengths = np.linalg.norm(moved, axis=1)
    expected = np.zeros(len(MODULES))
    expected[bottleneck_of_visit(visit)] = WORLD.jump
    np.testing.assert_allclose(lengths, expected, atol=1e-12)


@given(seeds, dims)
@settings(deadline=None)
def test_at_the_start_every_module_but_the_bottleneck_is_off_by_the_slack(seed: int, dim: int) -> None:
    lengths = np.linalg.norm(optimum(WORLD, seed, 0, dim), axis=1)
    np.testing.assert_allclose(lengths[:-1], WORLD.slack, rtol=1e-12)
    assert WORLD.jump - WORLD.slack - 1e-9 <= lengths[-1] <= WORLD.jump + WORLD.slack + 1e-9


def test_regimes_are_those_of_the_paper() -> None:
    rows = list(REGIMES.values())
    assert [row.dim for row in rows] == [16, 8, 16, 32]
    assert [row.pairs for row in rows] == [4, 8, 4, 8]
    assert [row.tight for row in rows] == [True, False, True, False]
    assert {rows[0].bottleneck(generation) for generation in range(120)} == {MODULES.index("synthesizer")}
    for row in rows[1:]:
        course = [MODULES[row.bottleneck(generation)] for generation in range(120)]
        assert course[::30] == [*BOTTLENECKS, BOTTLENECKS[0]]
        assert all(len(set(course[start : start + 30])) == 1 for start in range(0, 120, 30))


def test_an_unknown_regime_is_answered_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'stationary_tight'"):
        find_regime("stationary_tigth")


@pytest.mark.parametrize("constants", [(0, 1, 1), (math.nan, 1, 1), (1, -1, 1), (1, 1, math.inf)])
def test_constants_out_of_range_are_refused(constants: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError, match=r"must be a (positive )?distance"):
        Landscape(*constants)
