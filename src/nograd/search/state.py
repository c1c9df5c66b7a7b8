"""What changes over one search: theta, credit and the little that schemes remember."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.search.settings import SearchSettings


@dataclass(frozen=True, eq=False)
class SearchState:
    """The search before generation `generation`. Nothing else is needed to continue it.

    theta: float32 [modules, dim], the center. credit: float64 [modules], on the simplex.
    gain: float64 [modules], EMA of the fitness gain per pair (`bandit`).
    queued: float64 [modules, dim], sub-step still to be delivered; queued_left: int64 [modules], how often
    (`burst` with `spread`).
    """

    generation: int
    theta: NDArray[np.float32]
    credit: NDArray[np.float64]
    gain: NDArray[np.float64]
    queued: NDArray[np.float64]
    queued_left: NDArray[np.int64]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays, lossless; dtypes float32, float64 and int64."""
        return {
            "generation": np.array([self.generation], np.int64),
            "theta": self.theta.copy(),
            "credit": self.credit.copy(),
            "gain": self.gain.copy(),
            "queued": self.queued.copy(),
            "queued_left": self.queued_left.copy(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SearchState:
        """The inverse of arrays(); KeyError if one is missing."""
        return cls(
            generation=int(arrays["generation"][0]),
            theta=np.array(arrays["theta"], np.float32),
            credit=np.array(arrays["credit"], np.float64),
            gain=np.array(arrays["gain"], np.float64),
            queued=np.array(arrays["queued"], np.float64),
            queued_left=np.array(arrays["queued_left"], np.int64),
        )


def init(settings: SearchSettings) -> SearchState:
    """The untouched model: theta 0, uniform credit, nothing remembered."""
    count, dim = settings.count, settings.dim
    return SearchState(
        generation=0,
        theta=np.zeros((count, dim), np.float32),
        credit=np.full(count, 1.0 / count),
        gain=np.zeros(count),
        queued=np.zeros((count, dim)),
        queued_left=np.zeros(count, np.int64),
    )
