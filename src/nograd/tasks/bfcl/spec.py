"""A BFCL function document as a tool description short enough for a small model's prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nograd.tasks.bfcl.schema import declared, properties, required
from nograd.tasks.family import ToolSpec

_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)\.\s+(?=[A-Z])")
_OPTIONAL = re.compile(r"optional[.:]\s+", re.IGNORECASE)


def tool_spec(function: Mapping[str, Any]) -> ToolSpec:
    """Name, description and one line per parameter: type, whether optional, choices, meaning."""
    needed = required(function)
    lines = {name: _line(document, name in needed) for name, document in properties(function).items()}
    return ToolSpec(function["name"], _shorten(function["description"]), lines)


def _line(document: Mapping[str, Any], needed: bool) -> str:
    kind = declared(document).label + ("" if needed else ", optional")
    choices = f", one of {' | '.join(document['enum'])}" if "enum" in document else ""
    return f"{kind}{choices}: {_shorten(document['description'])}"


def _shorten(text: str) -> str:
    """The text without further sentences that only state a default, and without what the type line says."""
    first, *others = _SENTENCE_END.split(_OPTIONAL.sub("", text.strip(), count=1).rstrip("."))
    return ". ".join([first, *(sentence for sentence in others if "default" not in sentence.casefold())])
