"""One row of the paper check, and the ways to make one.

Tolerance of an equality: half a unit of the published figure's last digit, plus what the rounding of the
printed inputs can move the recomputation, plus an explicit `slack` where a formula holds only up to a bound
that the row's note states. Nothing else is added: a figure outside its tolerance is a disagreement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nograd.stats.paper.printed import Formula, Printed, propagated

Cell = float | str | None


@dataclass(frozen=True)
class PaperRow:
    """A published figure beside its recomputation.

    published: a number, or words for a decision (certified, hit, ...); None where the paper prints nothing.
    tolerance: allowed |published - recomputed|, None where the row compares decisions.
    agrees: None where nothing is published to compare with (the row states an implication).
    note: how it was recomputed, and what a disagreement means.
    """

    what: str
    source: str
    published: Cell
    recomputed: Cell
    tolerance: float | None
    agrees: bool | None
    note: str = ""


def equal(
    what: str,
    source: str,
    published: Printed,
    formula: Formula,
    inputs: Sequence[Printed] = (),
    *,
    slack: float = 0.0,
    note: str = "",
) -> PaperRow:
    """The published number should be the formula at the printed inputs, within the tolerance."""
    recomputed = float(formula([number.value for number in inputs]))
    tolerance = published.half_unit + propagated(formula, inputs) + slack
    agrees = abs(published.value - recomputed) <= tolerance * (1 + 1e-9)
    return PaperRow(what, source, published.value, recomputed, tolerance, agrees, note)


def exactly(
    what: str, source: str, published: Printed, value: float, *, slack: float = 0.0, note: str = ""
) -> PaperRow:
    """The published number should be this value, which rests on no printed number."""
    return equal(what, source, published, lambda _: value, slack=slack, note=note)


def attainable(what: str, source: str, published: Printed, step: float, note: str = "") -> PaperRow:
    """The published number should be the rounding of a whole multiple of step; the nearest one is shown."""
    assert step > 2 * published.half_unit, f"{what}: every printed number is near a multiple of {step}"
    return exactly(what, source, published, round(published.value / step) * step, note=note)


def decision(what: str, source: str, published: str, recomputed: str, note: str = "") -> PaperRow:
    """The published decision should be the recomputed one."""
    return PaperRow(what, source, published, recomputed, None, published == recomputed, note)


def holds(what: str, source: str, published: Cell, recomputed: Cell, agrees: bool, note: str) -> PaperRow:
    """A consistency condition that the note states; agrees says whether it holds."""
    return PaperRow(what, source, published, recomputed, None, agrees, note)


def implied(what: str, source: str, recomputed: Cell, note: str) -> PaperRow:
    """What published figures imply where the paper itself prints nothing."""
    return PaperRow(what, source, None, recomputed, None, None, note)
