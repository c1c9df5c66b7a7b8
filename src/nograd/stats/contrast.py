"""The summary of one contrast: mean difference, interval, exact p, TOST, sign counts, dropped seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nograd.stats.equivalence import MARGIN, Equivalence, tost
from nograd.stats.intervals import Interval, t_interval
from nograd.stats.pairing import DroppedSeed, Paired, Values, pair
from nograd.stats.sample import mean_of, sd_of
from nograd.stats.sign_flip import SignFlip, sign_flip


@dataclass(frozen=True)
class Contrast:
    """Everything a table row about one paired contrast needs.

    estimate, sd: mean and standard deviation (n - 1) of the differences, None where undefined.
    negative, positive: seeds with a difference below and above zero (n less both: exact zeros).
    seeds, differences: the pairs themselves, for figures.
    """

    estimate: float | None
    sd: float | None
    n: int
    interval: Interval
    test: SignFlip
    equivalence: Equivalence
    negative: int
    positive: int
    seeds: tuple[int, ...]
    differences: tuple[float, ...]
    dropped: tuple[DroppedSeed, ...]

    @property
    def p(self) -> float | None:
        """The sign-flip p, None where undefined."""
        return self.test.p

    @property
    def method(self) -> str:
        """How the p-value, the interval and the equivalence were obtained."""
        return f"{self.test.method}; {self.interval.method} interval; {self.equivalence.method}"


def compare(
    treatment: Values, control: Values, *, margin: float = MARGIN, confidence: float = 0.95, seed: int = 0
) -> Contrast:
    """Treatment minus control, paired by seed. `seed` keys the Monte Carlo test beyond 20 pairs."""
    return summarise(pair(treatment, control), margin=margin, confidence=confidence, seed=seed)


def summarise(paired: Paired, *, margin: float = MARGIN, confidence: float = 0.95, seed: int = 0) -> Contrast:
    """The contrast of differences that are already paired."""
    differences = paired.differences
    return Contrast(
        estimate=mean_of(differences),
        sd=sd_of(differences),
        n=int(differences.size),
        interval=t_interval(differences, confidence),
        test=sign_flip(differences, seed=seed),
        equivalence=tost(differences, margin),
        negative=int(np.count_nonzero(differences < 0)),
        positive=int(np.count_nonzero(differences > 0)),
        seeds=paired.seeds,
        differences=tuple(differences.tolist()),
        dropped=paired.dropped,
    )
