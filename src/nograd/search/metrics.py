"""Summaries of one run from its per-generation arrays (DESIGN §4, "Metrics")."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def auc(success: ArrayLike) -> float:
    """Mean center success over the generations; success: [generations], at least one."""
    return float(_curve(success).mean())


def final(success: ArrayLike) -> float:
    """Center success of the last generation."""
    return float(_curve(success)[-1])


def last_five(success: ArrayLike) -> float:
    """Mean center success of the last five generations (of all, if there are fewer)."""
    return float(_curve(success)[-5:].mean())


def starvation(pairs: ArrayLike) -> NDArray[np.float64]:
    """Share of the generations in which each module got no pair, float64 [modules]; pairs:
    [generations, modules]."""
    return np.asarray((_table(pairs) == 0).mean(axis=0), np.float64)


def movement(step_norms: ArrayLike) -> NDArray[np.float64]:
    """Σ‖step‖ of each module, float64 [modules]; step_norms: applied norms [generations, modules]."""
    return np.asarray(_table(step_norms).sum(axis=0), np.float64)


def _curve(values: ArrayLike) -> NDArray[np.float64]:
    curve = np.asarray(values, np.float64)
    if curve.ndim != 1 or not len(curve):
        raise ValueError(f"expected one value per generation, got shape {curve.shape}")
    return curve


def _table(values: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(values, np.float64)
    if table.ndim != 2 or not len(table):
        raise ValueError(f"expected [generations, modules], got shape {table.shape}")
    return table
