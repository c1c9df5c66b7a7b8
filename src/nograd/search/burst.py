"""The burst schedule: one module gets everything every M-th generation (paper §5.14, Q1 to Q3).

Generation 0 is a burst generation: the paper's 45 generations hold 12 of them ("0 of 72" over six seeds).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nograd.search.settings import SearchSettings


def is_burst(settings: SearchSettings, generation: int) -> bool:
    """Whether the arm gives all free pairs of this generation to its module."""
    return settings.arm.scheme == "burst" and generation % settings.count == 0


def step_factors(settings: SearchSettings, generation: int) -> NDArray[np.float64]:
    """Catch-up: M for the burst module in a burst generation, else 1; float64 [modules]."""
    wanted = settings.arm.catch_up or settings.arm.spread
    return _for_target(settings, generation, float(settings.count) if wanted else 1.0)


def clip_factors(settings: SearchSettings, generation: int) -> NDArray[np.float64]:
    """clip_scale for the burst module in a burst generation, else 1; float64 [modules]."""
    return _for_target(settings, generation, settings.arm.clip_scale)


def _for_target(settings: SearchSettings, generation: int, factor: float) -> NDArray[np.float64]:
    factors = np.ones(settings.count)
    if is_burst(settings, generation):
        factors[settings.target] = factor
    return factors


def spread(
    settings: SearchSettings,
    generation: int,
    step: NDArray[np.float64],
    queued: NDArray[np.float64],
    left: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Deliver a burst step as M equal sub-steps, one per generation from this one on.

    step, queued: float64 [modules, dim]; left: int64 [modules]. Returns what is applied now and the queue
    afterwards. Without the option `spread` the step passes unchanged. The sum of the sub-steps is the step
    that `catch_up` applies at once, trust region included; the end of the run cuts off what is left.
    """
    step, queued, left = step.copy(), queued.copy(), left.copy()
    if settings.arm.spread and is_burst(settings, generation):
        target = settings.target
        queued[target], left[target] = step[target] / settings.count, settings.count
        step[target] = 0.0
    due = left > 0
    step[due] += queued[due]
    left[due] -= 1
    queued[left == 0] = 0.0
    return step, queued, left
