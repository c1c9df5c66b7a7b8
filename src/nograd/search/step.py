"""The step rule as small transforms of a step, float64 [modules, dim] (DESIGN §4, "ES update")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def gradient(
    epsilon: NDArray[np.float32],
    plus: NDArray[np.float64],
    minus: NDArray[np.float64],
    modules: NDArray[np.int64],
    sigma: NDArray[np.float64],
) -> NDArray[np.float64]:
    """gₘ = 1/(nₘσₘ) Σₖ (F⁺ₖ − F⁻ₖ)/2 · εₖ; 0 for a module without pairs.

    epsilon: float32 [pairs, dim]; plus, minus: finite fitness [pairs]; modules: module of each pair;
    sigma: float64 [modules].
    """
    halves = (plus - minus) / 2
    sums = np.zeros((len(sigma), epsilon.shape[1]))
    np.add.at(sums, modules, halves[:, None] * epsilon.astype(np.float64))
    counts = np.bincount(modules, minlength=len(sigma))
    per_module = np.maximum(counts, 1) * sigma
    return np.asarray(sums / per_module[:, None])


def scaled(step: NDArray[np.float64], factors: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Multiply every module's step by its factor: the learning rate, IPW weights or catch-up."""
    per_module: NDArray[np.float64] = np.broadcast_to(factors, step.shape[0])
    return np.asarray(step * per_module[:, None])


def ipw_weights(pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """(1/M)/πₘ, πₘ = share of the generation's pairs (paper §5.14); 1 for a module without pairs.

    Exactly 1 where the pairs are split equally, so that IPW is a no-op under `uniform`."""
    weights = np.ones(len(pairs))
    served = pairs > 0
    weights[served] = (1 / len(pairs)) / (pairs[served] / pairs.sum())
    return weights


def norms(step: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean norm of every module's step, float64 [modules]."""
    return np.asarray(np.sqrt((step * step).sum(axis=1)))


def trust_region(step: NDArray[np.float64], clips: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale a module's step down to norm ≤ clip; a step within it passes bit for bit."""
    lengths = norms(step)
    bound = lengths > clips
    return scaled(step, np.divide(clips, lengths, out=np.ones(len(lengths)), where=bound))
