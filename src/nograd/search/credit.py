"""Credit: a point on the simplex over modules, the EMA of blame (DESIGN §4, "Blame")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ConfigError


def update_credit(
    credit: NDArray[np.float64], blame: NDArray[np.float64] | None, rate: float
) -> NDArray[np.float64]:
    """credit ← (1 − α)·credit + α·blame; unchanged if nothing failed (blame None).

    credit, blame: float64 [modules]. Raises ConfigError for a blame off the simplex.
    """
    if blame is None:
        return credit.copy()
    check_simplex("blame", blame, len(credit))
    return (1 - rate) * credit + rate * blame


def check_simplex(what: str, shares: NDArray[np.float64], modules: int) -> None:
    """ConfigError unless shares are one non-negative number per module that sum to 1 (within 1e-6)."""
    fits = shares.shape == (modules,) and bool((shares >= 0).all()) and abs(float(shares.sum()) - 1) <= 1e-6
    if not fits:
        raise ConfigError(
            f"{what} must be {modules} non-negative shares that sum to 1, got {shares.tolist()}"
        )
