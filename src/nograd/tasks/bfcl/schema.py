"""The types that a function document declares, and what of a call they alone decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PYTHON_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
LABELS: Mapping[str, str] = {"tuple": "array", "dict": "object", "any": "string"}
MAX_NAME = 40


@dataclass(frozen=True)
class Declared:
    """Declared type of one parameter.

    kind: the document's word. outer, inner: the Python types of the value and, for an array or tuple, of its
    elements (else None). label: the type in words that fit JSON."""

    kind: str
    outer: type
    inner: type | None
    label: str

    def coerce(self, value: object) -> object:
        """The two conversions that the checker grants: int to a float parameter, tuple to a tuple parameter.

        An int too large for a float stays an int, and so fails the type check."""
        if self.kind == "float" and type(value) is int:
            try:
                return float(value)
            except OverflowError:
                return value
        return list(value) if self.kind == "tuple" and isinstance(value, tuple) else value

    def fits(self, value: object) -> bool:
        """Whether the value and, one level deep, its elements are exactly of the declared types."""
        value = self.coerce(value)
        if type(value) is not self.outer:
            return False
        if self.inner is None or not isinstance(value, list):
            return True
        return all(type(item) is self.inner for item in value)


def declared(property_: Mapping[str, Any]) -> Declared:
    """Declared type of one entry of a function document's "properties"."""
    kind = property_["type"]
    outer, label = PYTHON_TYPES[kind], LABELS.get(kind, kind)
    if outer is not list:
        return Declared(kind, outer, None, label)
    element = property_["items"]["type"]
    return Declared(kind, outer, PYTHON_TYPES[element], f"{label} of {LABELS.get(element, element)}")


def properties(function: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Every parameter's document, in the order of the schema."""
    documents: Mapping[str, Mapping[str, Any]] = function["parameters"]["properties"]
    return documents


def required(function: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(function["parameters"]["required"])


def missing(function: Mapping[str, Any], arguments: Mapping[Any, Any]) -> Iterator[str]:
    """Required parameters that the call lacks, in the order of the schema."""
    return (name for name in required(function) if name not in arguments)


def feedback(function: Mapping[str, Any], arguments: object) -> str | None:
    """What the schema alone says against these arguments, in words for a retry; None if it has no objection.

    Knows no gold, so it cannot leak any."""
    if not isinstance(arguments, Mapping):
        return "the arguments must be one JSON object"
    absent = next(missing(function, arguments), None)
    if absent is not None:
        return f"missing required parameter {absent!r}"
    known = properties(function)
    for name, value in arguments.items():
        if name not in known:
            return f"unknown parameter {str(name)[:MAX_NAME]!r}; allowed: {', '.join(known)}"
        expected = declared(known[name])
        if not expected.fits(value):
            return f"parameter {name!r} must be {expected.label}"
    return None
