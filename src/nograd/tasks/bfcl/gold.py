"""The canonical gold arguments of a BFCL entry: one call out of the many that the checker accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nograd.tasks.bfcl.data import Entry
from nograd.tasks.bfcl.schema import required


def gold_arguments(entry: Entry) -> dict[str, Any]:
    """First accepted value of every parameter, in gold's order; what may be absent is.

    A required parameter stays even where gold would let it be absent."""
    needed = required(entry.function)
    kept = {name: options for name, options in entry.gold.items() if name in needed or "" not in options}
    return {name: _first(options) for name, options in kept.items()}


def gold_text(entry: Entry) -> str:
    """The canonical arguments as the JSON text that a caller would emit."""
    return json.dumps(gold_arguments(entry), ensure_ascii=False)


def _first(options: Sequence[Any]) -> Any:
    return _value(next((option for option in options if option != ""), ""))


def _value(option: Any) -> Any:
    """An accepted dict holds the accepted values of each key; all else stands for itself."""
    if isinstance(option, Mapping):
        return {key: _first(options) for key, options in option.items() if "" not in options}
    if isinstance(option, list):
        return [_value(item) for item in option]
    return option
