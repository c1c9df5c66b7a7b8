"""Seed-level bootstrap interval of a mean: seeds are resampled, never generations within a seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from nograd.stats.intervals import Interval
from nograd.stats.sample import as_sample, check_open_unit, mean_of, why_unusable

RESAMPLES = 10_000


def bootstrap_mean(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Percentile bootstrap interval of the mean of values, float [n], one per seed; undefined below 2 seeds.

    Percentile rather than BCa: BCa is undefined at zero variance, and its jackknife says little at n = 6.
    Draws are keyed by `seed`; equal values give the point [mean, mean]."""
    check_open_unit("confidence", confidence)
    sample = as_sample(values)
    method = f"seed-level percentile bootstrap ({resamples} resamples, seed {seed})"
    reason = why_unusable(sample, 2)
    if reason:
        return Interval(mean_of(sample), None, None, confidence, int(sample.size), method, reason)
    result = stats.bootstrap(
        (sample,),
        np.mean,
        n_resamples=resamples,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    low, high = result.confidence_interval
    return Interval(float(sample.mean()), float(low), float(high), confidence, int(sample.size), method)
