"""The task families by name. A new family is one more row of FAMILIES, or an entry point of another package."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from nograd.errors import ConfigError, unknown_name
from nograd.plugins import Registry
from nograd.tasks.bfcl.family import Bfcl
from nograd.tasks.family import FamilyInfo, TaskFamily
from nograd.tasks.in_house import in_house, in_house_heldout
from nograd.tasks.own.family import jsonl


@dataclass(frozen=True)
class Entry:
    """build: makes the family from keyword options; info can be listed without building (or fetching) it."""

    info: FamilyInfo
    build: Callable[..., TaskFamily]


_ROWS = (
    Entry(
        FamilyInfo("in_house", 32, "20 calculations and 12 knowledge lookups, one tool call each"),
        in_house,
    ),
    Entry(
        FamilyInfo("in_house_heldout", 64, "40 calculations and 24 lookups that in_house lacks"),
        in_house_heldout,
    ),
    Entry(FamilyInfo("bfcl", 48, "BFCL simple-python, 48 functions; relay the constant CORRECT"), Bfcl),
    Entry(FamilyInfo("bfcl_echo", 48, "the same, each task with its own output to relay"), partial(Bfcl, echo=True)),
    Entry(FamilyInfo("bfcl_heldout", 96, "BFCL simple-python, 96 other functions"), partial(Bfcl, heldout=True)),
    Entry(
        FamilyInfo("bfcl_echo_heldout", 96, "the same, each task with its own output to relay"),
        partial(Bfcl, heldout=True, echo=True),
    ),
    Entry(FamilyInfo("jsonl", None, "your own tasks file and tools module; see 'nograd init'"), jsonl),
)


def _plugged(name: str, value: object) -> Entry:
    if not isinstance(value, Entry) or value.info.name != name or "-" in name:
        raise TypeError(f"it must be a nograd.tasks.registry.Entry of the same name, without a dash, got {value!r}")
    return value


FAMILIES = Registry("nograd.families", {row.info.name: row for row in _ROWS}, _plugged)


def family(name: str, **options: Any) -> TaskFamily:
    """Build the family of this name ("-" and "_" are the same) with its options."""
    entry = FAMILIES.get(name.replace("-", "_"))
    if entry is None:
        raise unknown_name("task family", name, FAMILIES)
    known = inspect.signature(entry.build).parameters
    for option in options:
        if option not in known:
            raise ConfigError(
                f"task family {name!r} has no option {option!r}; it takes {', '.join(known) or 'none'}"
            )
    return entry.build(**options)
