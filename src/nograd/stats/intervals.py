"""Student-t confidence intervals of a mean."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy import stats

from nograd.stats.sample import (
    as_sample,
    check_open_unit,
    mean_of,
    sd_of,
    why_undefined_summary,
    why_unusable,
)


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; low and high are None, and reason says why, if undefined."""

    estimate: float | None
    low: float | None
    high: float | None
    confidence: float
    n: int
    method: str
    reason: str | None = None


METHOD = "Student t"


def t_interval(differences: ArrayLike, confidence: float = 0.95) -> Interval:
    """Confidence interval of the mean of differences, float [n]; undefined below two seeds."""
    check_open_unit("confidence", confidence)
    sample = as_sample(differences)
    mean, sd = mean_of(sample), sd_of(sample)
    if mean is None or sd is None:
        return Interval(mean, None, None, confidence, int(sample.size), METHOD, why_unusable(sample, 2))
    return t_interval_of(mean, sd, int(sample.size), confidence)


def t_interval_of(mean: float, sd: float, n: int, confidence: float = 0.95) -> Interval:
    """The same from a mean, a standard deviation (n - 1) and n. Zero variance gives [mean, mean]."""
    check_open_unit("confidence", confidence)
    reason = why_undefined_summary(mean, sd, n)
    if reason:
        return Interval(mean, None, None, confidence, n, METHOD, reason)
    half = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * sd / n**0.5
    return Interval(mean, mean - half, mean + half, confidence, n, METHOD)
