"""A small knowledge base: (entity, attribute) → value, read from knowledge.csv beside this file."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources

from nograd.tasks.tools import ToolError


class KnowledgeError(ToolError):
    """A lookup that found nothing, and the names that do exist nearby."""


@dataclass(frozen=True)
class KnowledgeBase:
    """facts: entity → attribute → value, all spelt as they are shown."""

    facts: Mapping[str, Mapping[str, str]]

    def lookup(self, entity: str, attribute: str) -> str:
        """The value; case and the amount of space in the names do not matter. Raises KnowledgeError."""
        attributes = self.facts[_find("entity", entity, self.facts)]
        return attributes[_find("attribute", attribute, attributes)]


def load() -> KnowledgeBase:
    """The built-in knowledge base."""
    facts: dict[str, dict[str, str]] = {}
    text = resources.files("nograd.tasks").joinpath("knowledge.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        facts.setdefault(row["entity"], {})[row["attribute"]] = row["value"]
    return KnowledgeBase(facts)


def _find(kind: str, name: str, known: Iterable[str]) -> str:
    """The known name that `name` spells."""
    by_key = {_key(each): each for each in known}
    key = _key(name)
    if key in by_key:
        return by_key[key]
    # Where nothing is near, a short list is shown whole; a part of a long one would only favour its entries.
    near = difflib.get_close_matches(key[:40], by_key, n=3, cutoff=0.7) or list(by_key)
    hint = f"try {', '.join(by_key[each] for each in near)}" if len(near) <= 5 else "no similar name is known"
    raise KnowledgeError(f"unknown {kind} {name[:40]!r}; {hint}")


def _key(name: str) -> str:
    return " ".join(name.casefold().split())
