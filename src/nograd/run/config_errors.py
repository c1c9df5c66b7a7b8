"""Every mistake in a configuration at once, one line each: the key, its value, what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from nograd.errors import ConfigError


def known_keys(section: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """Dotted key → type annotation of every section and setting below a section."""
    keys: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        kind = field.annotation
        keys[prefix + name] = kind
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys |= known_keys(kind, f"{prefix}{name}.")
    return keys


def config_error(error: ValidationError, section: type[BaseModel]) -> ConfigError:
    """One ConfigError that lists every mistake that pydantic found; a default that could not be worked out
    because of another mistake is not one."""
    known = known_keys(section)
    mistakes = [detail for detail in error.errors() if detail["type"] != "default_factory_not_called"]
    lines = [_line(dict(detail), known) for detail in mistakes]
    if len(lines) == 1:
        return ConfigError(lines[0])
    return ConfigError("\n  ".join([f"{len(lines)} settings cannot be used:", *lines]))


def _line(detail: Mapping[str, Any], known: Iterable[str]) -> str:
    key = ".".join(str(part) for part in detail["loc"])
    reason = _unknown(key, list(known)) if detail["type"] == "extra_forbidden" else _allowed(detail)
    return f"{key} = {detail['input']!r}: {reason}"


def _allowed(detail: Mapping[str, Any]) -> str:
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    if detail["type"] == "model_type":
        return "must be a table of settings"
    return str(detail["msg"]).replace("Input should", "must").replace("String should", "must")


def _unknown(key: str, known: list[str]) -> str:
    near = _nearest(key, known)
    if near:
        return f"unknown key; did you mean {near}?"
    section = key.rpartition(".")[0]
    siblings = [name.rpartition(".")[2] for name in known if name.rpartition(".")[0] == section]
    return f"unknown key; known here: {', '.join(siblings)}"


def _nearest(key: str, known: list[str]) -> str | None:
    """The nearest spelling of the whole key, else of its last part, which may belong to another section."""
    others = [name for name in known if not key.startswith(f"{name}.")]
    whole = difflib.get_close_matches(key, others, n=1, cutoff=0.75)
    if whole:
        return whole[0]
    by_last = {name.rpartition(".")[2]: name for name in reversed(known)}
    last = difflib.get_close_matches(key.rpartition(".")[2], by_last, n=1, cutoff=0.75)
    return by_last[last[0]] if last else None
