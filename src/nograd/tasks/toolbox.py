"""The tools of the in-house families: a calculator, a lookup and two that no task needs."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from nograd.tasks import calculator, knowledge
from nograd.tasks.family import ToolSpec
from nograd.tasks.tools import Tool, ToolError

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SIZES = (1e-9, 1e12)

# What a unit measures, and how much of the kind's base unit it is (exact by definition).
_UNITS = {
    "meter": ("length", Fraction(1)),
    "centimeter": ("length", Fraction(1, 100)),
    "kilometer": ("length", Fraction(1000)),
    "inch": ("length", Fraction("0.0254")),
    "foot": ("length", Fraction("0.3048")),
    "mile": ("length", Fraction("1609.344")),
    "gram": ("mass", Fraction(1)),
    "kilogram": ("mass", Fraction(1000)),
    "pound": ("mass", Fraction("453.59237")),
    "second": ("time", Fraction(1)),
    "minute": ("time", Fraction(60)),
    "hour": ("time", Fraction(3600)),
    "day": ("time", Fraction(86400)),
}
_SHORT = {
    "m": "meter",
    "cm": "centimeter",
    "km": "kilometer",
    "in": "inch",
    "inches": "inch",
    "ft": "foot",
    "feet": "foot",
    "g": "gram",
    "kg": "kilogram",
    "lb": "pound",
}


def weekday(date: str) -> str:
    """Name of the weekday of a date (proleptic Gregorian calendar)."""
    try:
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", date):
            raise ValueError
        return _WEEKDAYS[datetime.date.fromisoformat(date).weekday()]
    except ValueError:
        raise ToolError("date must be an existing day written like 2024-03-15") from None


def convert(value: float, from_unit: str, to_unit: str) -> str:
    """The value in another unit of the same kind."""
    if value and not _SIZES[0] <= abs(value) <= _SIZES[1]:
        raise ToolError("value must be 0 or between 1e-9 and 1e12 in size")
    kind, factor = _unit(from_unit)
    other_kind, other_factor = _unit(to_unit)
    if kind != other_kind:
        raise ToolError(f"{from_unit} is a {kind}, but {to_unit} is a {other_kind}")
    return calculator.render(Fraction(Decimal(str(value))) * factor / other_factor)


def _unit(name: str) -> tuple[str, Fraction]:
    key = name.strip().casefold()
    for spelling in (key, _SHORT.get(key, ""), key.removesuffix("s")):
        if spelling in _UNITS:
            return _UNITS[spelling]
    raise ToolError(f"unknown unit {name[:20]!r}; there is {', '.join(_UNITS)}")


def toolbox() -> Mapping[str, Tool]:
    """All tools by name, in the order in which they are offered."""
    tools = (
        Tool(
            ToolSpec(
                "calculator",
                "works out a sum, difference, product or quotient",
                {"expression": "string, such as 3 + 4"},
            ),
            {"expression": str},
            calculator.evaluate,
        ),
        Tool(
            ToolSpec(
                "lookup",
                "finds a fact about a country, an element or an animal",
                {"entity": "string, whom or what", "attribute": "string, such as capital"},
            ),
            {"entity": str, "attribute": str},
            knowledge.load().lookup,
        ),
        Tool(
            ToolSpec(
                "convert",
                "changes a length, mass or time to another unit",
                {"value": "number", "from_unit": "string, such as mile", "to_unit": "string, such as meter"},
            ),
            {"value": float, "from_unit": str, "to_unit": str},
            convert,
        ),
        Tool(
            ToolSpec(
                "weekday",
                "tells which day of the week a date is",
                {"date": "string, such as 2024-03-15"},
            ),
            {"date": str},
            weekday,
        ),
    )
    return {tool.spec.name: tool for tool in tools}
