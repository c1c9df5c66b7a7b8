"""What the benchmark's figures must reach, and aim at. Ratios and shares, so that they mean the same anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """A figure's bounds; `most` where smaller is better."""

    must: float
    aim: float
    most: bool = False
    unit: str = ""

    def met(self, value: float, bound: float) -> bool:
        """Whether a value is on the right side of a bound."""
        return value <= bound if self.most else value >= bound


BOUNDS: dict[str, Bound] = {
    "naive_over_nograd": Bound(8, 12, unit="x"),
    "naive_over_nograd_float32": Bound(8, 12, unit="x"),
    "naive_float32_over_auto": Bound(14, 22, unit="x"),
    "peft_over_nograd": Bound(4, 8, unit="x"),
    "perturbed_over_unperturbed": Bound(0.93, 0.97),
    "prefill_share": Bound(0.70, 0.85),
    "decode_share": Bound(0.45, 0.65),
    "growth_p16_over_p4": Bound(3.5, 3.0, most=True, unit="x"),
    "start_s": Bound(6, 3, most=True, unit="s"),
}


def verdict(name: str, value: float) -> str:
    """"aim", "must" or "below" for a figure with bounds."""
    bound = BOUNDS[name]
    if bound.met(value, bound.aim):
        return "aim"
    return "must" if bound.met(value, bound.must) else "below"


def below(figures: Mapping[str, float]) -> list[str]:
    """Figures that do not reach what they must. The start is left out: seconds are no ratio, and fail on a busy
    machine."""
    return [
        name for name in BOUNDS if name != "start_s" and name in figures and verdict(name, figures[name]) == "below"
    ]
