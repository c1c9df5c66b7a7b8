"""Ask and tell as a whole: candidates, order within a generation, dropped pairs, arms in comparison."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from search_worlds import (
    BLAME,
    bowl,
    evaluate,
    example_arm,
    generation,
    pairs,
    run,
    settings_for,
    thetas,
)

from nograd.errors import ConfigError
from nograd.search.arms import SCHEMES
from nograd.search.es import SearchState, ask, init, tell
from nograd.search.evaluation import Evaluation


def with_fitness(count: int, broken: dict[int, float]) -> list[Evaluation]:
    """Evaluations whose fitness is their row, but for the broken rows."""
    return [Evaluation(broken.get(row, float(row)), 0.5, 0.5, BLAME) for row in range(count)]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("ipw", [False, True])
def test_contract(scheme: str, ipw: bool) -> None:
    arm = dataclasses.replace(example_arm(scheme, floor=1), ipw=ipw)
    search = settings_for(arm, pairs=7, generations=12)
    state = init(search)
    for number in range(12):
        after, proposal, update = generation(search, state)
        assert (state.generation, after.generation) == (number, number + 1)
        assert proposal.thetas.shape == (15, 4, 6)
        assert proposal.thetas.dtype == after.theta.dtype == np.float32
        assert np.isfinite(after.theta).all()
        assert after.credit.sum() == pytest.approx(1)
        np.testing.assert_array_equal(np.bincount(proposal.modules, minlength=4), proposal.allocation.pairs)
        moved = after.theta.astype(np.float64) - state.theta
        np.testing.assert_allclose(np.linalg.norm(moved, axis=1), update.step_norm, atol=1e-5)
        np.testing.assert_array_equal(update.clip_bound, update.raw_norm > 0.5)
        state = after
    assert bowl(state.theta) > bowl(init(search).theta)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_search_is_deterministic_and_continues_from_its_arrays(scheme: str) -> None:
    search = settings_for(example_arm(scheme), generations=14)
    history = run(search)
    np.testing.assert_array_equal(thetas(history), thetas(run(search)))
    state = SearchState.from_arrays(history[5][0].arrays())
    for later, _, _ in history[6:]:
        state, _, _ = generation(search, state)
        for name, array in later.arrays().items():
            np.testing.assert_array_equal(state.arrays()[name], array)


def test_spread_continues_in_the_middle_of_a_cycle() -> None:
    search = settings_for("burst:module=caller,spread=true", generations=9)
    history = run(search)
    assert history[5][0].queued_left[2] == 2
    state = SearchState.from_arrays(history[5][0].arrays())
    for later, _, _ in history[6:]:
        state, _, _ = generation(search, state)
        np.testing.assert_array_equal(state.theta, later.theta)


def test_candidates_differ_from_the_center_in_one_module_by_sigma_epsilon() -> None:
    search = settings_for("soft_sigma", pairs=5)
    _, proposal, _ = run(search, 4)[-1]
    center = proposal.thetas[0]
    for pair, module in enumerate(proposal.modules):
        plus, minus = proposal.thetas[1 + 2 * pair], proposal.thetas[2 + 2 * pair]
        others = np.arange(4) != module
        np.testing.assert_array_equal(plus[others], center[others])
        np.testing.assert_array_equal(minus[others], center[others])
        shift = proposal.sigma[module] * proposal.epsilon[pair]
        np.testing.assert_allclose(plus[module], center[module] + shift, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(minus[module], center[module] - shift, rtol=1e-5, atol=1e-6)


def test_all_arms_of_a_seed_share_epsilon_where_they_meet() -> None:
    seen: dict[tuple[int, int, int], NDArray[np.float32]] = {}
    meetings = 0
    for scheme in SCHEMES:
        for number, (_, proposal, _) in enumerate(run(settings_for(example_arm(scheme)), 6)):
            keys = zip(proposal.modules.tolist(), proposal.pair_index.tolist(), strict=True)
            for key, epsilon in zip(keys, proposal.epsilon, strict=True):
                meetings += (number, *key) in seen
                np.testing.assert_array_equal(seen.setdefault((number, *key), epsilon), epsilon)
    assert meetings > 50
    assert len({epsilon.tobytes() for epsilon in seen.values()}) == len(seen)


def test_seeds_differ_and_seed_0_is_a_seed() -> None:
    first = [ask(settings_for(seed=seed), init(settings_for())).epsilon for seed in (0, 1, -1)]
    assert len({epsilon.tobytes() for epsilon in first}) == 3


def test_the_step_is_lr_times_the_gradient() -> None:
    search = settings_for(clip=np.inf, lr=0.1)
    after, proposal, update = generation(search, init(search))
    slope = 2 * np.arange(1, 5) / 10
    for pair, module in enumerate(proposal.modules):
        epsilon = proposal.epsilon[pair].astype(np.float64)
        expected = 0.1 * slope[module] * epsilon.sum() * epsilon
        np.testing.assert_allclose(after.theta[module], expected, rtol=1e-4, atol=1e-6)
        assert update.raw_norm[module] == pytest.approx(np.linalg.norm(expected), rel=1e-4)


def test_a_generation_routes_on_the_credit_before_it() -> None:
    search = settings_for("hard", credit_rate=1.0)
    history = run(search, 3)
    np.testing.assert_array_equal(pairs(history), [[4, 0, 0, 0], [0, 0, 0, 4], [0, 0, 0, 4]])
    np.testing.assert_array_equal(history[0][1].starved, [False, True, True, True])
    np.testing.assert_array_equal(history[0][2].credit, BLAME)


def test_hard_starves_its_bottleneck_about_as_measured_in_the_paper() -> None:
    """0.028 of 45 generations in paper Table 5: generation 0 at least."""
    starved = (pairs(run(settings_for("hard")))[:, 3] == 0).mean()
    assert 0 < starved <= 0.03


def test_credit_is_the_ema_of_the_centers_blame_and_waits_if_nothing_failed() -> None:
    search = settings_for()
    state, proposal = init(search), ask(settings_for(), init(search))
    blamed = [Evaluation(0.0, 0.0, 0.0, BLAME)] + [Evaluation(0.0, 0.0, 0.0, (1.0, 0, 0, 0))] * 8
    after, update = tell(search, state, proposal, blamed)
    np.testing.assert_allclose(after.credit, 0.8 * 0.25 + 0.2 * np.array(BLAME))
    assert update.blame is not None
    np.testing.assert_array_equal(update.blame, BLAME)
    unblamed = [dataclasses.replace(blamed[0], blame=None), *blamed[1:]]
    after, update = tell(search, state, proposal, unblamed)
    np.testing.assert_array_equal(after.credit, state.credit)
    assert update.blame is None


@given(
    st.dictionaries(
        st.integers(0, 8),
        st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300, 3.5e38]),
        max_size=9,
    )
)
@settings(deadline=None)
def test_non_finite_fitness_drops_its_pair_and_never_reaches_theta(broken: dict[int, float]) -> None:
    search = settings_for("lock:module=caller", clip=np.inf)
    state, proposal = init(search), ask(search, init(search))
    after, update = tell(search, state, proposal, with_fitness(9, broken))
    dropped = sorted({(row - 1) // 2 for row in broken if row > 0})
    assert update.dropped == tuple(dropped)
    kept = [pair for pair in range(4) if pair not in dropped]
    # Every pair's difference is −1, so g = mean of −ε/2σ over the kept pairs.
    mean = proposal.epsilon[kept].astype(np.float64).mean(axis=0) if kept else np.zeros(6)
    np.testing.assert_allclose(after.theta[2], 0.3 * -0.5 / 0.3 * mean, rtol=1e-5, atol=1e-7)
    assert np.isfinite(after.theta).all()
    assert np.isfinite(after.gain).all()
    assert np.isnan(update.gains[2]) == (0 in broken or not kept)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=9, max_size=9))
@settings(deadline=None)
def test_any_fitness_leaves_theta_within_the_trust_region(fitness: list[float]) -> None:
    search = settings_for("lock:module=caller,ipw=true")
    proposal = ask(search, init(search))
    after, _ = tell(search, init(search), proposal, with_fitness(9, dict(enumerate(fitness))))
    assert np.isfinite(after.theta).all()
    assert np.linalg.norm(after.theta[2].astype(np.float64)) <= 0.5 + 1e-6
    np.testing.assert_array_equal(after.theta[[0, 1, 3]], 0)


def test_modules_without_pairs_stay_where_they_are() -> None:
    state, _, update = run(settings_for("lock:module=selector"))[-1]
    np.testing.assert_array_equal(state.theta[[0, 2, 3]], 0)
    np.testing.assert_array_equal(update.step_norm[[0, 2, 3]], 0)
    assert update.step_norm[1] > 0


def test_locks_on_two_inert_modules_see_the_same_world() -> None:
    def last_two(theta: NDArray[np.float32]) -> float:
        return bowl(theta[2:])

    curves = [
        [
            last_two(proposal.thetas[0])
            for _, proposal, _ in run(settings_for(f"lock:module={name}"), 10, last_two)
        ]
        for name in ("planner", "selector")
    ]
    assert curves[0] == curves[1]


@pytest.mark.parametrize(("modules", "count"), [(4, 4), (4, 8), (3, 3), (3, 9), (5, 10)])
def test_ipw_is_a_bitwise_no_op_under_uniform(modules: int, count: int) -> None:
    changes: dict[str, Any] = {"modules": tuple("abcde"[:modules]), "pairs": count}
    plain, weighted = run(settings_for(**changes), 10), run(settings_for("uniform:ipw=true", **changes), 10)
    np.testing.assert_array_equal(thetas(plain), thetas(weighted))


def test_ipw_weighs_by_the_inverse_share() -> None:
    def slope(theta: NDArray[np.float32]) -> float:
        return float(theta.astype(np.float64).sum()) / 100

    plain, weighted = (run(settings_for(f"soft:floor=1{x}", pairs=8), 1, slope) for x in ("", ",ipw=true"))
    lock, lock_weighted = (
        run(settings_for(f"lock:module=caller,floor=1{x}", pairs=8), 1, slope) for x in ("", ",ipw=true")
    )
    np.testing.assert_allclose(weighted[0][2].raw_norm, plain[0][2].raw_norm)
    np.testing.assert_allclose(lock_weighted[0][2].raw_norm, lock[0][2].raw_norm * [2, 2, 0.4, 2])


def test_a_clip_that_never_binds_changes_no_bit_when_raised() -> None:
    plain, raised, off = (run(settings_for(lr=0.02, clip=clip)) for clip in (0.5, 2.0, np.inf))
    assert not any(update.clip_bound.any() for _, _, update in plain)
    np.testing.assert_array_equal(thetas(plain), thetas(raised))
    np.testing.assert_array_equal(thetas(plain), thetas(off))


def test_clips_are_per_module() -> None:
    _, _, update = run(settings_for(clip=(1e-4, 2e-4, 3e-4, 4e-4)), 1)[0]
    np.testing.assert_allclose(update.step_norm, [1e-4, 2e-4, 3e-4, 4e-4])
    assert update.clip_bound.all()
    assert (update.raw_norm > 4e-4).all()


def test_uniform_search_climbs_the_bowl() -> None:
    state, _, _ = run(settings_for(lr=0.1))[-1]
    assert bowl(state.theta) > 0.2 * bowl(np.zeros((4, 6), np.float32))


def test_tell_and_ask_do_not_change_what_they_are_given() -> None:
    search = settings_for("burst:module=caller,spread=true")
    state = run(search, 5)[-1][0]
    before, proposal = state.arrays(), ask(search, state)
    tell(search, state, proposal, evaluate(proposal.thetas))
    for name, array in state.arrays().items():
        np.testing.assert_array_equal(array, before[name])


def test_what_does_not_fit_is_refused() -> None:
    search = settings_for(generations=2)
    state, proposal = init(search), ask(search, init(search))
    results = evaluate(proposal.thetas)
    with pytest.raises(ConfigError, match="9 candidates need as many evaluations, got 8"):
        tell(search, state, proposal, results[:-1])
    with pytest.raises(ConfigError, match="blame must be 4 non-negative shares"):
        tell(search, state, proposal, evaluate(proposal.thetas, blame=(0.5, 0.2, 0.2, 0.2)))
    with pytest.raises(ConfigError, match="blame must be 4 non-negative shares"):
        tell(search, state, proposal, evaluate(proposal.thetas, blame=(np.nan, 0.5, 0.5, 0.0)))
    after, _ = tell(search, state, proposal, results)
    with pytest.raises(ConfigError, match="of generation 0, the state at 1"):
        tell(search, after, proposal, results)
    with pytest.raises(ConfigError, match="ended after 2 generations"):
        ask(search, run(search)[-1][0])
    with pytest.raises(ConfigError, match=r"\[modules, dim\] = \(4, 7\)"):
        ask(settings_for(dim=7), state)
