"""Straight lines: OLS of points, and the paper's regression of ΔAUC on starvation (§5.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from nograd.errors import ConfigError
from nograd.stats.bootstrap import RESAMPLES, bootstrap_mean
from nograd.stats.intervals import Interval, t_interval
from nograd.stats.pairing import DroppedSeed, Term, signed_sum
from nograd.stats.sample import ROUNDING, Sample, as_sample, why_unusable
from nograd.stats.sign_flip import SignFlip, sign_flip


@dataclass(frozen=True)
class Line:
    """Least-squares line y = intercept + slope·x. What is undefined is None, and reason says why.

    low, high: 95% t interval of the slope. p: two-sided t-test of slope = 0. Both need three points that are
    not exactly on a line. r2 is undefined if y is constant.
    """

    slope: float | None
    intercept: float | None
    r2: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int
    reason: str | None = None
    method: str = "ordinary least squares"

    def at(self, x: float) -> float:
        """The line's value at x; ConfigError if there is no line."""
        if self.slope is None or self.intercept is None:
            raise ConfigError(f"there is no fitted line to evaluate: {self.reason}")
        return self.intercept + self.slope * x


@dataclass(frozen=True)
class StarvationFit:
    """ΔAUC on starvation over arms.

    line: OLS of the arms' mean ΔAUC (each over the complete seeds).
    slopes: the within-seed fit, seed -> slope over the arms. Since every seed has every arm, their mean is
        line.slope; unlike the line's own p (arms as units), what follows treats seeds as units.
    interval, test, bootstrap: t interval, sign-flip test and seed-level bootstrap interval of the mean slope.
    dropped: seeds that lack an arm.

    Without a line there are no slopes, and what depends on them is undefined.
    """

    line: Line
    slopes: Mapping[int, float]
    interval: Interval
    test: SignFlip
    bootstrap: Interval
    dropped: tuple[DroppedSeed, ...]


def fit_line(x: ArrayLike, y: ArrayLike) -> Line:
    """OLS of y on x, both float [n]."""
    xs, ys = as_sample(x), as_sample(y)
    if xs.size != ys.size:
        raise ConfigError(f"a line needs as many x as y, got {xs.size} and {ys.size}")
    reason = why_unusable(xs, 2, "points") or why_unusable(ys, 2, "points")
    if reason or _constant(xs):
        return _no_line(int(xs.size), reason or "all x are equal")
    flat = _constant(ys)
    fit = stats.linregress(xs, ys)
    slope = 0.0 if flat else float(fit.slope)
    intercept = float(ys.mean()) if flat else float(fit.intercept)
    r2 = None if flat else float(fit.rvalue) ** 2
    notes = ["R² is undefined: all y are equal"] if flat else []
    residuals = ys - intercept - slope * xs
    if xs.size < 3 or np.abs(residuals).max() <= ROUNDING * np.abs(ys).max():
        notes.append("p and interval are undefined: the points lie on the line")
        return Line(slope, intercept, r2, None, None, None, int(xs.size), "; ".join(notes))
    half = float(stats.t.ppf(0.975, xs.size - 2)) * float(fit.stderr)
    return Line(slope, intercept, r2, slope - half, slope + half, float(fit.pvalue), int(xs.size))


def fit_starvation(
    starvation: Mapping[str, float],
    delta: Mapping[str, Mapping[int, float]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> StarvationFit:
    """The starvation regression from per-seed differences.

    starvation: the bottleneck's starvation rate per arm. delta: arm -> seed -> ΔAUC against uniform.
    Only seeds that every arm has are used; the others are named. ConfigError if the arms differ."""
    if set(starvation) != set(delta):
        odd = sorted(set(starvation) ^ set(delta))
        raise ConfigError(f"starvation and delta must name the same arms; only one of them has {odd}")
    arms = sorted(delta)
    complete = signed_sum([Term(arm, 1, delta[arm]) for arm in arms])
    rates = as_sample([starvation[arm] for arm in arms])
    table = np.array([[delta[arm][key] for arm in arms] for key in complete.seeds], dtype=np.float64)
    line = fit_line(rates, table.mean(axis=0)) if table.size else _no_line(len(arms), "no seed has every arm")
    slopes = _slopes(rates, table) if line.slope is not None else np.empty(0)
    return StarvationFit(
        line=line,
        slopes=dict(zip(complete.seeds, slopes.tolist(), strict=False)),
        interval=t_interval(slopes),
        test=sign_flip(slopes, seed=seed),
        bootstrap=bootstrap_mean(slopes, resamples=resamples, seed=seed),
        dropped=complete.dropped,
    )


def _no_line(n: int, reason: str) -> Line:
    return Line(None, None, None, None, None, None, n, reason)


def _slopes(rates: Sample, table: Sample) -> Sample:
    """OLS slope of each row of table, float64 [seeds, arms], on rates, float64 [arms]."""
    offsets = rates - rates.mean()
    return np.asarray(table @ offsets / (offsets @ offsets))


def _constant(values: Sample) -> bool:
    return bool(np.ptp(values) <= ROUNDING * np.abs(values).max())
