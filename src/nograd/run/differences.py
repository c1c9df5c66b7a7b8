"""Two curves of one measure, generation by generation: their differences, and what those come down to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Curve = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Differences:
    """b less a of one measure. Descriptive: the generations of a run depend on each other, so no test over
    them says anything about other seeds.

    values: float64 [generations], NaN where either side is not finite. The means are over the finite ones, None
    if there are none; that of success is the difference in AUC. A middle generation belongs to the second half.
    """

    values: Curve

    @property
    def mean(self) -> float | None:
        return _mean(self.values)

    @property
    def first_half(self) -> float | None:
        return _mean(self.values[: len(self.values) // 2])

    @property
    def second_half(self) -> float | None:
        return _mean(self.values[len(self.values) // 2 :])

    @property
    def last_five(self) -> float | None:
        return _mean(self.values[-5:])

    @property
    def signs(self) -> tuple[int, int, int]:
        """Generations in which b was above a, below it, exactly equal."""
        above, below, equal = (self.values > 0).sum(), (self.values < 0).sum(), (self.values == 0).sum()
        return int(above), int(below), int(equal)


def differences(a: Curve, b: Curve) -> Differences:
    """b less a, over the generations that both have. a, b: float64 [generations of each]."""
    shared = min(len(a), len(b))
    there = np.isfinite(a[:shared]) & np.isfinite(b[:shared])
    return Differences(np.subtract(b[:shared], a[:shared], out=np.full(shared, np.nan), where=there))


def _mean(values: Curve) -> float | None:
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else None
