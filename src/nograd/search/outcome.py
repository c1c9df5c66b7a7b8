"""The fitness numbers of a generation that may be learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.search.evaluation import Evaluation

LARGEST_FITNESS = float(np.finfo(np.float32).max)
"""Beyond this a fitness counts as non-finite, so that no product of the step rule can overflow."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Finite fitness only.

    center: of the center, NaN if it was not finite. kept: bool [pairs], both sides finite.
    plus, minus: float64 [kept pairs].
    """

    center: float
    kept: NDArray[np.bool_]
    plus: NDArray[np.float64]
    minus: NDArray[np.float64]

    @property
    def dropped(self) -> tuple[int, ...]:
        """Indices of the pairs that are not kept."""
        return tuple(np.flatnonzero(~self.kept).tolist())


def read_outcome(evaluations: Sequence[Evaluation]) -> Outcome:
    """Sort out evaluations of the center, then + and − of each pair."""
    fitness = np.array([evaluation.fitness for evaluation in evaluations], np.float64)
    finite = np.abs(fitness) <= LARGEST_FITNESS
    kept = finite[1::2] & finite[2::2]
    center = float(fitness[0]) if finite[0] else float("nan")
    return Outcome(center, kept, fitness[1::2][kept], fitness[2::2][kept])
