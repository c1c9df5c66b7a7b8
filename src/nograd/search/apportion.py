"""Whole pairs from shares: by largest remainder, or dealt round like cards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def largest_remainder(pairs: int, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Split pairs in proportion to weights, float64 [modules]; ties go to the lower index.

    Returns int64 [modules] that sums to pairs. weights are non-negative with a positive sum.
    """
    quotas = pairs * (weights / weights.sum())
    counts: NDArray[np.int64] = np.floor(quotas).astype(np.int64)
    order = np.argsort(counts - quotas, kind="stable")
    counts[order[: pairs - int(counts.sum())]] += 1
    return counts


def deal(pairs: int, targets: Sequence[int], start: int, modules: int) -> NDArray[np.int64]:
    """Deal pairs one by one over the target modules, from the start-th card on; int64 [modules].

    Dealing on where the last generation stopped gives every target the same after len(targets) generations.
    """
    cards = (start + np.arange(pairs)) % len(targets)
    return np.bincount(np.asarray(targets)[cards], minlength=modules).astype(np.int64)
