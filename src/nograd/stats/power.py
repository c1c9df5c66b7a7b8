"""How many seeds a TOST needs to certify a margin, given the spread of the paired differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import integrate, stats

from nograd.errors import ConfigError
from nograd.stats.equivalence import MARGIN
from nograd.stats.sample import check_margin, check_open_unit

MOST_SEEDS = 1_000_000


@dataclass(frozen=True)
class SeedsNeeded:
    """Smallest n that reaches the wanted power, and its power; n is None, with a reason, if none does."""

    n: int | None
    power: float | None
    method: str
    reason: str | None = None


def tost_power(n: int, sd: float, *, margin: float = MARGIN, mean: float = 0.0, alpha: float = 0.05) -> float:
    """Probability that a paired-t TOST with n seeds certifies ±margin when differences are N(mean, sd²).

    Exact up to quadrature. With u = s/sd, which is chi(n-1)/sqrt(n-1) and independent of the mean estimate,
    certification means |estimate| < margin - t·u·sd/√n: a normal probability given u, integrated over u.
    """
    check_margin(margin)
    check_open_unit("alpha", alpha)
    _check_spread(n, sd, mean)
    if sd == 0.0:
        return float(abs(mean) < margin)
    error = sd / n**0.5
    critical = float(stats.t.isf(alpha, n - 1))
    widest = margin / (critical * error)
    spread = stats.chi(n - 1, scale=(n - 1) ** -0.5)

    def certified(u: float) -> float:
        reach = margin - critical * u * error
        inside = stats.norm.cdf((reach - mean) / error) - stats.norm.cdf((-reach - mean) / error)
        return float(inside * spread.pdf(u))

    low, high = (min(float(spread.ppf(q)), widest) for q in (1e-12, 1 - 1e-12))
    return float(np.clip(integrate.quad(certified, low, high, limit=200)[0], 0.0, 1.0))


def seeds_for_equivalence(
    sd: float, *, margin: float = MARGIN, mean: float = 0.0, power: float = 0.8, alpha: float = 0.05
) -> SeedsNeeded:
    """Smallest number of paired seeds with which ±margin is certified with the wanted power.

    A true mean on or beyond the margin can never be certified reliably: n is None then."""
    check_open_unit("power", power)
    check_margin(margin)
    _check_spread(2, sd, mean)
    method = f"paired-t TOST at ±{margin:g}, alpha {alpha:g}, power {power:g}"
    if abs(mean) >= margin:
        return SeedsNeeded(None, None, method, f"a true mean of {mean:g} is not inside ±{margin:g}")

    def reached(n: int) -> float:
        return tost_power(n, sd, margin=margin, mean=mean, alpha=alpha)

    high = 2
    while reached(high) < power:
        high *= 2
        if high > MOST_SEEDS:
            return SeedsNeeded(None, None, method, f"more than {MOST_SEEDS} seeds")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) >= power else (middle, high)
    return SeedsNeeded(high, reached(high), method)


def _check_spread(n: int, sd: float, mean: float) -> None:
    if n < 2:
        raise ConfigError(f"a paired test needs at least 2 seeds, got {n}")
    if not (np.isfinite(sd) and sd >= 0 and np.isfinite(mean)):
        raise ConfigError(f"the planned sd and mean must be finite, sd not negative, got {sd=}, {mean=}")
