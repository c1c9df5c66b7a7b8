"""Does a criterion hold? Its number, from finished runs only, against its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nograd.errors import NogradError
from nograd.stats import Contrast, compare
from nograd.study.plan import Criterion
from nograd.study.results import Results, Values
from nograd.study.seeds import format_seeds

Verdict = Literal["hit", "miss", "not scorable"]
SHOWN = 3
"""How many unfinished cells a sentence names."""


@dataclass(frozen=True)
class Scored:
    """A criterion with its number. value: None if not scorable. text: the evidence in one sentence."""

    criterion: Criterion
    verdict: Verdict
    value: float | None
    contrast: Contrast | None
    text: str


def score_criterion(criterion: Criterion, results: Results) -> Scored:
    """Hit or miss, or not scorable as long as a planned run of its arms is missing: an early look would be
    peeking, and a mean over fewer seeds another number than the one predicted."""
    reason = _why_not_yet(criterion, results)
    if reason is not None:
        return _not_scorable(criterion, reason)
    try:
        values = results.values(criterion.metric, criterion.of)
        control = None if criterion.minus is None else results.values(criterion.metric, criterion.minus)
    except NogradError as error:
        return _not_scorable(criterion, str(error))
    if control is None:
        return _of_one_arm(criterion, values)
    return _of_a_difference(criterion, compare(values, control))


def overall(scored: Sequence[Scored]) -> Verdict:
    """One miss is a miss; without one, what cannot be scored leaves the whole open."""
    verdicts = {one.verdict for one in scored}
    return "miss" if "miss" in verdicts else "not scorable" if "not scorable" in verdicts else "hit"


def _why_not_yet(criterion: Criterion, results: Results) -> str | None:
    arms = [name for name in (criterion.of, criterion.minus) if name is not None]
    absent = [name for name in arms if name not in results.measured]
    if absent:
        return f"no sweep has the arm {absent[0]!r}"
    lacking = [text for (label, _), text in results.unfinished.items() if label in arms]
    if not lacking:
        return None
    more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    return "; ".join(lacking[:SHOWN]) + more


def _of_one_arm(criterion: Criterion, values: Values) -> Scored:
    undefined = [seed for seed, value in values.items() if not math.isfinite(value)]
    if undefined:
        return _not_scorable(criterion, f"{criterion.metric} is undefined for seeds {format_seeds(undefined)}")
    return _judge(criterion, math.fsum(values.values()) / len(values), len(values), None)


def _of_a_difference(criterion: Criterion, contrast: Contrast) -> Scored:
    if contrast.dropped:
        first = contrast.dropped[0]
        return _not_scorable(criterion, f"seed {first.seed} has no pair ({first.reason})")
    value = _statistic(criterion.statistic, contrast)
    if value is None:
        return _not_scorable(criterion, f"{criterion.statistic} is undefined with {contrast.n} seeds")
    return _judge(criterion, value, contrast.n, contrast)


def _statistic(name: str, contrast: Contrast) -> float | None:
    return {
        "estimate": contrast.estimate,
        "p": contrast.p,
        "ci_low": contrast.interval.low,
        "ci_high": contrast.interval.high,
        "tost_p": contrast.equivalence.p,
    }[name]


def _judge(criterion: Criterion, value: float, n: int, contrast: Contrast | None) -> Scored:
    low = -math.inf if criterion.low is None else criterion.low
    high = math.inf if criterion.high is None else criterion.high
    verdict: Verdict = "hit" if low <= value <= high else "miss"
    text = f"{_what(criterion)} = {value:+.4f} (n = {n}), predicted {_interval(criterion)}: {verdict}"
    return Scored(criterion, verdict, value, contrast, text)


def _what(criterion: Criterion) -> str:
    arms = criterion.of if criterion.minus is None else f"{criterion.of} less {criterion.minus}"
    statistic = "" if criterion.statistic == "estimate" else f"{criterion.statistic} of "
    return f"{statistic}{criterion.metric}, {arms}" + (", pooled" if criterion.pooled else "")


def _interval(criterion: Criterion) -> str:
    if criterion.low is None:
        return f"at most {criterion.high:+g}"
    if criterion.high is None:
        return f"at least {criterion.low:+g}"
    return f"{criterion.low:+g} to {criterion.high:+g}"


def _not_scorable(criterion: Criterion, reason: str) -> Scored:
    return Scored(criterion, "not scorable", None, None, f"{_what(criterion)}: not scorable, {reason}")
