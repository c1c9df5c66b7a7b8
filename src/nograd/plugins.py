"""Registries that other packages can add to, by entry points in their own packaging.

A package names what it brings in its pyproject.toml, for instance

    [project.entry-points."nograd.families"]
    chemistry = "my_package.nograd_parts:CHEMISTRY"

The groups are nograd.families (a `tasks.registry.Entry`), nograd.arms (a `search.arms.SchemeInfo` with a route) and
nograd.evaluators (a `run.evaluators.EvaluatorBuilder`). Nothing is looked for as long as only names of nograd's own
are asked for. What cannot be used is warned about and left out: a broken package must not stop other work.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Name → entry: nograd's own in their order, then those of plug-ins by name."""

    def __init__(self, group: str, own: Mapping[str, T], check: Callable[[str, object], T]) -> None:
        """check(name, value) returns what a plug-in brings, or raises TypeError that says what it should be."""
        self.group = group
        self._own = dict(own)
        self._check = check

    def __getitem__(self, name: str) -> T:
        return self._own[name] if name in self._own else self._plugged[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._plugged

    def __len__(self) -> int:
        return len(self._own) + len(self._plugged)

    def package(self, name: str) -> tuple[str, str] | None:
        """Name and version of the package that brings an entry; None for nograd's own and for unknown names."""
        points = () if name in self._own else tuple(entry_points(group=self.group, name=name))
        return _package(points[0]) if points else None

    @cached_property
    def _plugged(self) -> dict[str, T]:
        points = sorted(entry_points(group=self.group), key=lambda point: (point.name, _package(point)))
        often = Counter(point.name for point in points)
        found = {}
        for point in points:
            try:
                if point.name in self._own:
                    raise TypeError("nograd has an entry of this name; the package must choose another")
                if often[point.name] > 1:
                    raise TypeError("another package brings the same name; uninstall one of them")
                found[point.name] = self._check(point.name, point.load())
            except Exception as error:  # whatever a stranger's module does when it is imported
                self._warn(point, error)
        return found

    def _warn(self, point: EntryPoint, error: Exception) -> None:
        package = " ".join(_package(point))
        reason = str(error) if type(error) is TypeError else repr(error)
        warnings.warn(
            f"the entry {point.name!r} of {self.group} in the package {package} is not used: {reason}",
            stacklevel=2,
        )


def _package(point: EntryPoint) -> tuple[str, str]:
    return (point.dist.name, point.dist.version) if point.dist else ("(unknown)", "")
