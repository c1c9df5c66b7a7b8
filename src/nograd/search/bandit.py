"""Gain-estimating allocation: pairs go where pairs have gained fitness (what paper §6 leaves untested).

EXP3-style (Auer et al. 2002, "The nonstochastic multiarmed bandit problem"): free pairs are drawn
independently from pₘ = (1 − γ)·softmax(SHARPNESS·gainₘ / max|gain|) + γ/M, with γ the arm's `explore`. The
share γ/M keeps every module's probability away from 0; dividing by the largest gain makes the rule
independent of the unit of fitness.

The gain of a pair is max(F⁺, F⁻) − F of the center on the same tasks: what was found by looking there. It is
0 for a module that changes nothing and negative at a peak.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nograd.search.outcome import Outcome

SHARPNESS = 3.0
"""Exponent at the largest gain; the value at which the β of `soft` ends."""


def probabilities(gain: NDArray[np.float64], explore: float) -> NDArray[np.float64]:
    """Probability that a free pair goes to each module; gain: float64 [modules], EMA."""
    scale = float(np.abs(gain).max()) or 1.0
    weights = np.exp(SHARPNESS * (gain - gain.max()) / scale)
    favoured: NDArray[np.float64] = weights / weights.sum()
    return (1 - explore) * favoured + explore / len(gain)


def realised_gains(outcome: Outcome, modules: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Mean gain per pair of each module, float64 [count]; NaN where nothing finite was measured.

    modules: int64 [kept pairs], the module of each.
    """
    gains = np.maximum(outcome.plus, outcome.minus) - outcome.center
    sums = np.bincount(modules, gains, minlength=count)
    pairs = np.bincount(modules, minlength=count)
    return np.where(pairs > 0, sums / np.maximum(pairs, 1), np.nan)


def update_gain(gain: NDArray[np.float64], realised: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """EMA of the gains; a module without a measurement (NaN) keeps its value."""
    return np.where(np.isnan(realised), gain, (1 - rate) * gain + rate * realised)
