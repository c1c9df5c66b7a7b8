"""Differences and sums that the text prints beside the figures they come from."""

from __future__ import annotations

from collections.abc import Sequence

from nograd.stats.paper.printed import Printed, printed
from nograd.stats.paper.rows import PaperRow, equal, exactly, holds

SUBTRACTIONS = (
    ("BFCL hard - uniform, from their net learning", "§5.10", "-0.118", "0.013", "0.132"),
    ("BFCL hard - random", "§5.10", "-0.057", "-0.118", "-0.062"),
    ("w=0 less w=0.5, seeds 1-3", "§5.9", "-0.021", "0.841", "0.862"),
    ("IPW less floored soft", "§5.14", "-0.022", "-0.024", "-0.001"),
    ("random basis less SVD, seeds 1-6", "§5.14", "0.008", "0.854", "0.846"),
    ("matched basis less SVD, seeds 1-6", "§5.14", "0.035", "0.881", "0.846"),
    ("matched less random basis", "§5.14", "0.027", "0.881", "0.854"),
    ("catch-up less burst", "§5.14", "0.076", "0.0005", "-0.075"),
)
"""what, source, printed difference, minuend, subtrahend."""

STEP_RANGE = printed("0.10", "0.15")
"""§5.13: realised per-module steps late in training, from and to."""
MOVEMENT = (("uniform", Printed("0.37"), 4), ("hard", Printed("0.12"), 1), ("random", Printed("0.08"), 1))
"""§5.13: arm, realised movement per generation, modules that move in a generation."""


def difference_checks() -> list[PaperRow]:
    """All rows of this part."""
    rows = [
        equal(what, source, Printed(result), _minus, printed(first, second))
        for what, source, result, first, second in SUBTRACTIONS
    ]
    rows += [
        equal(
            "floor-level results expected by chance in 70 tests",
            "§6",
            Printed("2"),
            lambda v: v[0] * v[1],
            [Printed("70"), Printed("0.031")],
        ),
        exactly("0.02 AUC in successes of a 16-task batch", "§3", Printed("0.3"), 0.02 * 16),
        _worst_in_house(),
        *(_step_size(arm, movement, modules) for arm, movement, modules in MOVEMENT),
    ]
    return rows


def _minus(pair: Sequence[float]) -> float:
    return pair[0] - pair[1]


def _worst_in_house() -> PaperRow:
    losses = {"random, main": -0.074, "burst, §5.14": -0.075, "random with shuffled binding, §5.13": -0.079}
    worst = min(losses, key=losses.__getitem__)
    return exactly(
        "largest in-house cost of misrouting",
        "abstract",
        Printed("-0.074"),
        losses[worst],
        note=f"the abstract's 'up to' holds for the main sweep; {worst} prints a larger loss in-house",
    )


def _step_size(arm: str, movement: Printed, modules: int) -> PaperRow:
    """Movement per generation over the modules that move should be a per-module step of the printed range."""
    step, slack = movement.value / modules, movement.half_unit / modules
    low, high = STEP_RANGE
    inside = low.value - low.half_unit <= step + slack and step - slack <= high.value + high.half_unit
    return holds(
        f"mean step per moved module of {arm}",
        "§5.13",
        f"{low.text} to {high.text}",
        step,
        inside,
        f"movement {movement.text} per generation over {modules} moved module(s)",
    )
