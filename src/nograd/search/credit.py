"""Credit: a point on the simplex over modules, the EMA of blame (DESIGN §4, "Blame")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nograd.search.allocation import check_simplex


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
