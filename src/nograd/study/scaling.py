"""Fit a plan to the machine at hand: another model, fewer seeds, fewer generations, a smaller batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from nograd.run.config import Count, Name, Section


class Scaling(Section):
    """None leaves the plan's own value. settings: further sections of the run configuration, e.g.
    {"execution": {"threads": 1}}. What is set here holds for every arm, also for one that differs in it."""

    model: Name | None = None
    seeds: Annotated[tuple[int, ...], Field(strict=False, min_length=1)] | None = None
    generations: Count | None = None
    batch: Count | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


def changes(scaling: Scaling) -> dict[str, Any]:
    """The scaling as sections of the run configuration; another model has no revision of the plan's."""
    sections: dict[str, Any] = {}
    if scaling.model is not None:
        sections["model"] = {"spec": scaling.model, "revision": None}
    if scaling.generations is not None:
        sections["search"] = {"generations": scaling.generations}
    if scaling.batch is not None:
        sections["tasks"] = {"batch": scaling.batch}
    return merged(sections, scaling.settings)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables of both; where both set a key, the one above counts."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merged(old, value)
        result[key] = value
    return result
