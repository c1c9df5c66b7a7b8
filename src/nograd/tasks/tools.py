"""A tool that runs in this process: its specification, its parameters' types, the function behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nograd.tasks.family import ToolResult, ToolSpec


class ToolError(ValueError):
    """A failed call, in words for the model that made it: they name what is allowed and never hold gold."""


@dataclass(frozen=True)
class Tool:
    """types: parameter name → str or float; a whole number passes as a float, a boolean never does.

    run: takes the checked arguments by keyword, returns the output, raises only ToolError."""

    spec: ToolSpec
    types: Mapping[str, type]
    run: Callable[..., str]


def execute(tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
    """Check the arguments, all of them before anything runs, and call the tool."""
    try:
        _check_names(tool, arguments)
        for name, expected in tool.types.items():
            _check_type(name, arguments[name], expected)
        return ToolResult(ok=True, output=tool.run(**arguments))
    except ToolError as error:
        return ToolResult(ok=False, error=str(error))


def _check_names(tool: Tool, arguments: Mapping[str, Any]) -> None:
    wanted = ", ".join(tool.types)
    for name in tool.types:
        if name not in arguments:
            raise ToolError(f"missing {name}; {tool.spec.name} takes {wanted}")
    for name in arguments:
        if name not in tool.types:
            raise ToolError(f"unknown parameter {name[:20]!r}; {tool.spec.name} takes {wanted}")


def _check_type(name: str, value: object, expected: type) -> None:
    if expected is str and not isinstance(value, str):
        raise ToolError(f"{name} must be a text in double quotes")
    if expected is float and not _is_number(value):
        raise ToolError(f"{name} must be a number without quotes")


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)
