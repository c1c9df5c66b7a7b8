"""What a printed mean, interval or TOST p says about the standard deviation behind it, and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from scipy import stats

from nograd.stats.equivalence import MARGIN, tost_of
from nograd.stats.intervals import Interval
from nograd.stats.paper.printed import Printed
from nograd.stats.paper.rows import PaperRow, decision, equal


def sd_from_interval(low: float, high: float, n: int) -> float:
    """SD of the paired differences from a 95% t interval of their mean."""
    return (high - low) / 2 * sqrt(n) / float(stats.t.ppf(0.975, n - 1))


def sd_from_tost(mean: float, p: float, n: int, side: int) -> float:
    """SD from one TOST p: side -1 is the test against -margin, +1 the one against +margin."""
    return (MARGIN - side * mean) / float(stats.t.isf(p, n - 1)) * sqrt(n)


def two_sided_p(mean: float, sd: float, n: int) -> float:
    """p of the paired t-test. Not the paper's test: it tells whether a sign-flip p is plausible."""
    return 2 * float(stats.t.sf(abs(mean) * sqrt(n) / sd, n - 1))


def tost_p(mean: float, sd: float, n: int, side: int) -> float:
    """One TOST p from a mean and an SD: side -1 tests against -margin, +1 against +margin."""
    result = tost_of(mean, sd, n)
    p = result.p_lower if side < 0 else result.p_upper
    assert p is not None, result.reason
    return p


def other_tost_p(mean: float, p: float, n: int, side: int) -> float:
    """The TOST p on the other side of the one that is given."""
    return tost_p(mean, sd_from_tost(mean, p, n, side), n, -side)


def signs_must_agree(mean: float, sd: float, n: int) -> bool:
    """Whether every sample with this mean and SD has all signs alike.

    With n values, (largest - mean)² <= sd²(n-1)²/n (Samuelson 1968), so |t| > n - 1 is enough."""
    return abs(mean) * sqrt(n) > sd * (n - 1)


def centre_row(what: str, source: str, mean: Printed, low: Printed, high: Printed) -> PaperRow:
    """A t interval is symmetric: its centre should be the printed mean."""

    def centre(bounds: Sequence[float]) -> float:
        return sum(bounds) / 2

    return equal(f"{what}: centre of the interval is the mean", source, mean, centre, [low, high])


def side_row(what: str, source: str, p: Printed, t_p: float) -> PaperRow:
    """The printed sign-flip p and the t-test p implied by mean and SD should fall on one side of 0.05."""
    return decision(
        f"{what}: sign-flip p and implied t-test p on one side of 0.05",
        source,
        _side(p.value),
        _side(t_p),
        f"printed sign-flip p {p.text}, implied t-test p {t_p:.4f}",
    )


def span(interval: Interval) -> str:
    """A defined interval in words."""
    return f"[{interval.low:.4f}, {interval.high:.4f}]"


def _side(p: float) -> str:
    return "p < 0.05" if p < 0.05 else "p >= 0.05"
