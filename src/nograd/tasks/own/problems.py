"""Everything that is wrong with a tasks file at once: a line's number, the field, its value, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nograd.errors import TaskError
from nograd.tasks.own.check import Check
from nograd.tasks.own.line import TaskLine

SHOWN = 10
MAX_VALUE = 60


@dataclass(frozen=True, order=True)
class Problem:
    """line: from 1."""

    line: int
    text: str


def problem(line: int, field: str, value: object, reason: str) -> Problem:
    """A field whose value cannot be used."""
    shown = repr(value)
    shown = shown if len(shown) <= MAX_VALUE else f"{shown[: MAX_VALUE - 1]}…"
    return Problem(line, f"{field} = {shown}: {reason}")


def unknown(name: str, known: Iterable[str]) -> str:
    """The reason that nothing has this name."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"unknown; did you mean {near[0]!r}?" if near else f"unknown; known: {', '.join(names) or 'none'}"


def form_problems(line: int, error: ValidationError) -> list[Problem]:
    """What pydantic found in a line."""
    return [_form_problem(line, dict(detail)) for detail in error.errors()]


def raise_all(path: Path, problems: Sequence[Problem]) -> None:
    """One TaskError with the first of all problems, if there are any."""
    found = sorted(problems)
    if not found:
        return
    lines = [f"line {each.line}, {each.text}" for each in found[:SHOWN]]
    if len(found) == 1:
        raise TaskError(f"{path} {lines[0]}")
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    raise TaskError("\n  ".join([f"{path} has {len(found)} mistakes:", *lines, *more]))


def _form_problem(line: int, detail: Mapping[str, Any]) -> Problem:
    field = ".".join(str(part) for part in detail["loc"])
    kind = detail["type"]
    if kind == "missing":
        return Problem(line, f"{field} is missing; add it ({_MISSING.get(field, 'see nograd tasks --help')})")
    if kind == "extra_forbidden":
        known = Check.model_fields if detail["loc"][0] == "check" else TaskLine.model_fields
        return problem(line, field, detail["input"], unknown(str(detail["loc"][-1]), known))
    if kind == "value_error":
        return problem(line, field, detail["input"], str(detail["ctx"]["error"]))
    if kind == "string_pattern_mismatch":
        return problem(line, field, detail["input"], "must not be blank")
    if kind in ("model_type", "dict_type"):
        return problem(line, field, detail["input"], "must be a JSON object")
    reason = str(detail["msg"]).replace("Input should", "must").replace("String should", "must")
    return problem(line, field, detail["input"], reason)


_MISSING = {
    "question": "what is asked",
    "tool": "the name of the tool that answers the question; an agent without tools is tuned with nograd.tune",
    "arguments": 'what the tool is called with, such as {"item": "lamp"}',
}
