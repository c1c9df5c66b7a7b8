"""The environment: shared luck, independence of company, and the success that the formula promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nograd.synthetic import CALIBRATED, REGIMES, Landscape, Rewards, SyntheticEvaluator, World
from nograd.synthetic.landscape import competence, optimum
from nograd.synthetic.regimes import MODULES

REGIME = REGIMES["nonstationary_tight"]
generations = st.integers(0, 119)


def some_thetas(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((*shape, len(MODULES), REGIME.dim)).astype(np.float32)


@given(st.integers(0, 1000), generations)
@settings(deadline=None, max_examples=40)
def test_a_seed_s_numbers_do_not_depend_on_its_company(seed: int, generation: int) -> None:
    seeds = (4, 9, 7)
    thetas = some_thetas(seed, len(seeds), 5)
    together = World(REGIME, seeds).evaluate(generation, thetas)
    for row, own_seed in enumerate(seeds):
        alone = SyntheticEvaluator(REGIME, own_seed).evaluate(generation, thetas[row])
        assert list(alone.evaluations) == together[row]
        single = SyntheticEvaluator(REGIME, own_seed).evaluate(generation, thetas[row, :1])
        assert single.evaluations[0] == together[row][0]


@given(st.integers(0, 1000), generations, st.floats(0, 1))
@settings(deadline=None, max_examples=40)
def test_nearer_to_the_optimum_never_fails_where_farther_succeeds(
    seed: int, generation: int, share: float
) -> None:
    """Common random numbers: better modules solve the same tasks and more."""
    peak = optimum(CALIBRATED, 5, REGIME.visit(generation), REGIME.dim)
    far = some_thetas(seed, 1)
    near = (peak + share * (far - peak)).astype(np.float32)
    world = SyntheticEvaluator(REGIME, 5)
    (worse,), (better,) = (world.evaluate(generation, thetas).evaluations for thetas in (far, near))
    assert better.success >= worse.success
    assert better.fitness >= worse.fitness
    assert world.evaluate(generation, peak[None].astype(np.float32)).evaluations[0].blame is None


def test_success_is_the_product_of_the_modules_chances() -> None:
    world = SyntheticEvaluator(REGIME, 2, rewards=Rewards(batch=40_000))
    theta = np.zeros((1, len(MODULES), REGIME.dim), np.float32)
    for generation in (0, 40, 100):
        peak = optimum(CALIBRATED, 2, REGIME.visit(generation), REGIME.dim)
        chance = competence(CALIBRATED, theta[0], peak)
        (center,) = world.evaluate(generation, theta).evaluations
        assert center.success == pytest.approx(chance.prod(), abs=0.01)
        assert center.metrics["tool_accuracy"] == pytest.approx(chance[:2].prod(), abs=0.01)
        assert center.metrics["call_ok"] == pytest.approx(chance[:3].prod(), abs=0.01)


@pytest.mark.parametrize("generation", [0, 30, 60])
def test_the_known_bottleneck_fails_most_and_is_blamed_most(generation: int) -> None:
    steep = Landscape(width=1.0, jump=1.5, slack=0.1)
    world = SyntheticEvaluator(REGIME, 3, steep, Rewards(batch=4000))
    bottleneck = world.bottleneck(generation)
    assert bottleneck is not None
    trained = optimum(steep, 3, REGIME.visit(generation), REGIME.dim)
    trained[bottleneck] = 0.0
    (center,) = world.evaluate(generation, trained[None].astype(np.float32)).evaluations
    assert center.blame is not None
    assert int(np.argmax(center.blame)) == bottleneck
    assert center.blame[bottleneck] > 0.95


def test_every_generation_brings_new_luck_and_every_seed_its_own() -> None:
    theta = np.zeros((1, len(MODULES), REGIME.dim), np.float32)
    curves = {
        seed: [SyntheticEvaluator(REGIME, seed).evaluate(g, theta).evaluations[0].success for g in range(20)]
        for seed in (1, 2)
    }
    assert curves[1] != curves[2]
    assert len(set(curves[1])) > 3
