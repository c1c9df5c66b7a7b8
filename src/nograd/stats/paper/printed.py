"""Numbers as printed: a value, what rounding may hide, and how far that moves a formula's result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

Formula = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class Printed:
    """A number as the paper prints it, e.g. Printed("-0.0139")."""

    text: str

    @property
    def value(self) -> float:
        """The printed value."""
        return float(self.text)

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit: the most that rounding can have moved the number."""
        exponent = Decimal(self.text).as_tuple().exponent
        assert isinstance(exponent, int), self.text
        return 0.5 * 10.0**exponent


def printed(*texts: str) -> tuple[Printed, ...]:
    """Several printed numbers."""
    return tuple(Printed(text) for text in texts)


def propagated(formula: Formula, inputs: Sequence[Printed]) -> float:
    """How far the rounding of the inputs can move the formula's result: worst case, first order.

    Each input moves to both ends of its rounding interval while the others stay; the half-ranges add up."""
    values = [number.value for number in inputs]

    def moved(position: int, step: float) -> float:
        return formula([*values[:position], values[position] + step, *values[position + 1 :]])

    return sum(
        abs(moved(position, number.half_unit) - moved(position, -number.half_unit)) / 2
        for position, number in enumerate(inputs)
    )
