"""Paired-t TOST: is the mean difference certified to lie within a margin of zero?

Two one-sided tests (Schuirmann 1987): p_lower for mean > -margin, p_upper for mean < +margin. Equivalence at
alpha needs both below alpha. (statsmodels' `ttost_paired` is the same test on raw data; it is undefined at
zero variance and cannot take published means and SDs, so it serves as the oracle in the tests.)
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy import stats

from nograd.stats.sample import (
    ROUNDING,
    as_sample,
    check_margin,
    mean_of,
    sd_of,
    why_undefined_summary,
    why_unusable,
)

MARGIN = 0.02
"""The paper's margin (§3): about 0.3 successes of a 16-task batch."""
METHOD = "paired-t TOST"


@dataclass(frozen=True)
class Equivalence:
    """Both one-sided p-values; None, and reason says why, where the test is undefined."""

    estimate: float | None
    margin: float
    p_lower: float | None
    p_upper: float | None
    n: int
    method: str = METHOD
    reason: str | None = None

    @property
    def p(self) -> float | None:
        """The larger of the two: the p-value of equivalence."""
        return None if self.p_lower is None or self.p_upper is None else max(self.p_lower, self.p_upper)

    def certified(self, alpha: float = 0.05) -> bool | None:
        """Whether equivalence is certified at alpha; None if the test is undefined."""
        return None if self.p is None else self.p < alpha


def tost(differences: ArrayLike, margin: float = MARGIN) -> Equivalence:
    """TOST of differences, float [n], against ±margin; undefined below two seeds."""
    check_margin(margin)
    sample = as_sample(differences)
    mean, sd = mean_of(sample), sd_of(sample)
    if mean is None or sd is None:
        return Equivalence(mean, margin, None, None, int(sample.size), reason=why_unusable(sample, 2))
    return tost_of(mean, sd, int(sample.size), margin)


def tost_of(mean: float, sd: float, n: int, margin: float = MARGIN) -> Equivalence:
    """The same from a mean, a standard deviation (n - 1) and n.

    Zero variance is decided by comparing the mean with the margin: p = 0 on the inside, 1 on or beyond it."""
    check_margin(margin)
    reason = why_undefined_summary(mean, sd, n)
    if reason:
        return Equivalence(mean, margin, None, None, n, reason=reason)
    if sd == 0.0:
        inner = margin * (1 - ROUNDING)
        return Equivalence(mean, margin, float(mean <= -inner), float(mean >= inner), n)
    error = sd / n**0.5
    p_lower = float(stats.t.sf((mean + margin) / error, n - 1))
    p_upper = float(stats.t.cdf((mean - margin) / error, n - 1))
    return Equivalence(mean, margin, p_lower, p_upper, n)
