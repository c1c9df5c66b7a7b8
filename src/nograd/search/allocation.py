"""How many mirrored pairs, and which perturbation size, each module gets in a generation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.search.credit import check_simplex
from nograd.search.schemes import Situation, route
from nograd.search.settings import SearchSettings


@dataclass(frozen=True, eq=False)
class Allocation:
    """One generation's split of the budget.

    pairs: int64 [modules], sums to the settings' pairs. inclusion: float64 [modules], probability before the
    generation's draw that the module gets a pair. sigma: float64 [modules].
    """

    pairs: NDArray[np.int64]
    inclusion: NDArray[np.float64]
    sigma: NDArray[np.float64]


def allocate(
    settings: SearchSettings,
    credit: NDArray[np.float64],
    generation: int,
    gain: NDArray[np.float64] | None = None,
    bottleneck: int | None = None,
) -> Allocation:
    """Split the pairs as the settings' arm says: the floor first, then the free pairs.

    credit: float64 [modules], on the simplex. gain: float64 [modules], for `bandit`; None is all 0.
    bottleneck: index of the true bottleneck, for `oracle`. A pure function: the randomness of a scheme is
    keyed by (seed, generation). Raises ConfigError for a credit off the simplex.
    """
    check_simplex("credit", credit, settings.count)
    known_gain = np.zeros(settings.count) if gain is None else gain
    routing = route(Situation(settings, generation, credit, known_gain, bottleneck))
    floor = settings.arm.floor
    return Allocation(
        pairs=floor + routing.pairs,
        inclusion=np.ones(settings.count) if floor else routing.inclusion,
        sigma=_sigmas(settings, credit),
    )


def _sigmas(settings: SearchSettings, credit: NDArray[np.float64]) -> NDArray[np.float64]:
    """σ per module: the same for all, but for `soft_sigma` scaled by credit (DESIGN §4)."""
    if settings.arm.scheme != "soft_sigma":
        return np.full(settings.count, settings.sigma)
    return settings.sigma * np.clip(0.5 + settings.count * credit / 2, 0.5, 2.0)
