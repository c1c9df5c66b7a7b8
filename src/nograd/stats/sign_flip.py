"""The two-sided sign-flip test on the mean of paired differences: exact to 20 seeds, Monte Carlo beyond.

Under the null a difference is as likely to have the opposite sign. p is the share of the 2^n sign vectors
whose mean is at least as far from zero as the observed one. Zero differences stay in the sample. One seed
gives p = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nograd.stats.sample import Sample, as_sample, mean_of, why_unusable

EXACT_LIMIT = 20
DRAWS = 99_999
CHUNK = 8192
TIE = 1e-10
"""Two sums tie when they differ by less than this share of the sum of |differences|: far above float rounding
(about 1e-14), far below one success in any sweep we could run."""


@dataclass(frozen=True)
class SignFlip:
    """Mean difference and two-sided p; p is None, and reason says why, where the test is undefined."""

    estimate: float | None
    p: float | None
    n: int
    method: str
    reason: str | None = None


def sign_flip(differences: ArrayLike, *, draws: int = DRAWS, seed: int = 0) -> SignFlip:
    """Sign-flip test of differences, float [n].

    Beyond EXACT_LIMIT seeds, `draws` random sign vectors keyed by `seed` give p = (k + 1) / (draws + 1)
    (Phipson and Smyth 2010: never 0, and valid as the observed vector counts as a draw)."""
    sample = as_sample(differences)
    exact = sample.size <= EXACT_LIMIT
    method = "exact sign-flip" if exact else f"Monte Carlo sign-flip ({draws} draws, seed {seed})"
    reason = why_unusable(sample, 1)
    if reason:
        return SignFlip(mean_of(sample), None, int(sample.size), method, reason)
    p = _exact_p(sample) if exact else _monte_carlo_p(sample, draws, seed)
    return SignFlip(float(sample.mean()), p, int(sample.size), method)


def smallest_p(n: int) -> float:
    """The smallest p that n seeds can reach: all signs alike, 2 / 2^n."""
    return 2.0 ** (1 - n)


def _exact_p(sample: Sample) -> float:
    """Enumerates half the sign vectors, float64 [2^(n-1)]: a vector and its negative are equally extreme."""
    sums = sample[:1]
    for difference in sample[1:]:
        sums = np.concatenate([sums + difference, sums - difference])
    extreme = np.abs(sums) >= abs(sums[0]) - TIE * np.abs(sample).sum()
    return float(np.mean(extreme))


def _monte_carlo_p(sample: Sample, draws: int, seed: int) -> float:
    generator = np.random.default_rng(seed)
    threshold = abs(sample.sum()) - TIE * np.abs(sample).sum()
    extreme = 0
    for start in range(0, draws, CHUNK):
        rows = min(CHUNK, draws - start)
        signs = 2.0 * generator.integers(0, 2, size=(rows, sample.size), dtype=np.int8) - 1.0
        extreme += int(np.count_nonzero(np.abs(signs @ sample) >= threshold))
    return (extreme + 1) / (draws + 1)
