"""The burst schedule and its compensations (paper §5.14)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from search_worlds import MODULES, pairs, run, settings_for, thetas

from nograd.search.metrics import movement, starvation

BURST = "burst:module=synthesizer"
CYCLE = len(MODULES)


def slope(theta: NDArray[np.float32]) -> float:
    """Linear in the synthesizer only: gradients do not depend on where theta is."""
    return float(theta[3].astype(np.float64).sum()) / 10


@given(st.sampled_from(MODULES), st.integers(1, 9), st.integers(0, 1))
@settings(deadline=None, max_examples=25)
def test_a_cycle_gives_every_module_the_same_as_uniform(module: str, free: int, floor: int) -> None:
    total = free + floor * CYCLE
    burst = pairs(run(settings_for(f"burst:module={module},floor={floor}", pairs=total), 3 * CYCLE))
    uniform = pairs(run(settings_for(f"uniform:floor={floor}", pairs=total), 3 * CYCLE))
    for start in range(0, 3 * CYCLE, CYCLE):
        cycle = slice(start, start + CYCLE)
        np.testing.assert_array_equal(burst[cycle].sum(axis=0), uniform[cycle].sum(axis=0))


def test_burst_generations_are_every_mth_from_0_as_in_the_paper() -> None:
    counts = pairs(run(settings_for(BURST)))
    assert np.flatnonzero(counts[:, 3] == 4).tolist() == list(range(0, 45, 4))
    assert (counts[:, 3] > 0).sum() == 12
    assert starvation(counts)[3] == pytest.approx(0.75, abs=0.02)
    np.testing.assert_array_equal(counts[1:4], [[2, 1, 1, 0], [1, 2, 1, 0], [1, 1, 2, 0]])


def test_catch_up_equals_burst_until_the_first_burst_step() -> None:
    arms = BURST, BURST + ",catch_up=true"
    plain, caught_up = (run(settings_for(arm, lr=0.02), 6) for arm in arms)
    np.testing.assert_array_equal(plain[0][1].thetas, caught_up[0][1].thetas)
    np.testing.assert_array_equal(plain[0][0].theta[:3], caught_up[0][0].theta[:3])
    assert (plain[0][0].theta[3] != caught_up[0][0].theta[3]).any()


def test_catch_up_multiplies_the_burst_step_of_its_module_only() -> None:
    arms = BURST + ",floor=1", BURST + ",floor=1,catch_up=true"
    plain, caught_up = (run(settings_for(arm, pairs=8, clip=np.inf), 2, slope) for arm in arms)
    np.testing.assert_allclose(caught_up[0][2].raw_norm, plain[0][2].raw_norm * [1, 1, 1, CYCLE])
    np.testing.assert_allclose(caught_up[1][2].raw_norm, plain[1][2].raw_norm)


def test_clip_scale_widens_only_the_burst_clip() -> None:
    tight = settings_for(BURST + ",clip_scale=4,floor=1", pairs=8, clip=1e-3)
    history = run(tight, 2)
    np.testing.assert_allclose(history[0][2].step_norm, [1e-3, 1e-3, 1e-3, 4e-3])
    np.testing.assert_allclose(history[1][2].step_norm, 1e-3)


def test_a_burst_clip_that_never_binds_changes_no_bit() -> None:
    """Paper §5.14, Q2."""
    plain, raised = (run(settings_for(arm, lr=0.02)) for arm in (BURST, BURST + ",clip_scale=4"))
    assert not any(update.clip_bound[3] for _, _, update in plain)
    np.testing.assert_array_equal(thetas(plain), thetas(raised))


@pytest.mark.parametrize("clip", [np.inf, 0.05])
def test_spread_delivers_the_catch_up_movement_in_m_equal_steps(clip: float) -> None:
    caught_up = run(settings_for(BURST + ",catch_up=true", clip=clip), CYCLE, slope)
    spread = run(settings_for(BURST + ",spread=true", clip=clip), CYCLE, slope)
    goal = caught_up[0][0].theta[3].astype(np.float64)
    for delivered, (state, _, update) in enumerate(spread, start=1):
        np.testing.assert_allclose(state.theta[3], goal * delivered / CYCLE, rtol=1e-5)
        assert update.step_norm[3] == pytest.approx(np.linalg.norm(goal) / CYCLE, rel=1e-5)
    np.testing.assert_array_equal(spread[-1][0].queued, 0)
    np.testing.assert_array_equal(spread[-1][0].queued_left, 0)
    np.testing.assert_allclose(spread[0][2].raw_norm, caught_up[0][2].raw_norm)
    np.testing.assert_array_equal(spread[0][2].clip_bound, caught_up[0][2].clip_bound)


def test_spread_and_catch_up_move_the_module_equally_over_whole_cycles() -> None:
    norms = {
        option: np.stack(
            [update.step_norm for _, _, update in run(settings_for(f"{BURST},{option}=true"), 40, slope)]
        )
        for option in ("catch_up", "spread")
    }
    np.testing.assert_allclose(movement(norms["spread"]), movement(norms["catch_up"]), rtol=1e-6)
    assert norms["spread"][:, 3].max() < norms["catch_up"][:, 3].max() / 2


def test_one_module_bursts_always() -> None:
    history = run(settings_for("burst:module=only,spread=true", modules=("only",)), 5)
    np.testing.assert_array_equal(pairs(history), 4)
