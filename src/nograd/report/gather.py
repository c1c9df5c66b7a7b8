"""What a report is about: the sweeps of each plan, with their results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nograd.errors import RunError
from nograd.study.ledger import LedgerRow, score
from nograd.study.plan import Plan
from nograd.study.plan_file import PlanFile
from nograd.study.results import Results, collect
from nograd.study.sweep_directory import Sweep, find_sweeps, open_sweep


@dataclass(frozen=True, eq=False)
class Study:
    """All sweeps of one plan.

    file: the plan as the first of them began with it, under the path it came from, so that git can be asked
    about it. extended: sweeps of the plan that this one extends. results: of the plan's own sweeps."""

    file: PlanFile
    sweeps: tuple[Sweep, ...]
    extended: tuple[Sweep, ...]
    results: Results

    @property
    def slug(self) -> str:
        """The plan's name as part of file names and ids."""
        return re.sub(r"[^A-Za-z0-9._-]", "-", self.file.name)

    @property
    def plan(self) -> Plan:
        return self.file.plan

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Baseline → it and the arms compared with it, in the plan's order; only arms with results."""
        groups: dict[str, list[str]] = {}
        for label in self.plan.arms:
            if label in self.results.measured:
                groups.setdefault(self.plan.baseline_of(label) or label, []).append(label)
        return {baseline: tuple(labels) for baseline, labels in groups.items()}


def gather(paths: Iterable[Path]) -> tuple[Study, ...]:
    """The sweeps at or below the paths by plan, in the order given; each sweep counts once. Raises RunError
    if a path holds no sweep, or sweeps of a plan do not go together."""
    roots = {root.resolve(): root for path in paths for root in find_sweeps(path)}
    by_plan: dict[str, list[Sweep]] = {}
    for root in roots.values():
        sweep = open_sweep(root)
        by_plan.setdefault(sweep.file.name, []).append(sweep)
    return tuple(_study(sweeps, by_plan) for sweeps in by_plan.values())


def ledger_rows(study: Study) -> tuple[LedgerRow, ...]:
    """The predictions of a study's plan, scored."""
    return score([*study.sweeps, *study.extended], study.file)


def _study(sweeps: Sequence[Sweep], by_plan: Mapping[str, Sequence[Sweep]]) -> Study:
    first = sweeps[0]
    for other in sweeps:
        if list(other.file.plan.arms) != list(first.file.plan.arms):
            raise RunError(
                f"{first.root} and {other.root} are sweeps of plans called {first.file.name!r} with other "
                f"arms; look at them apart, or give one plan another name"
            )
    came_from = Path(first.record["plan"]["path"])
    file = PlanFile(first.file.name, came_from, first.file.text, first.file.plan)
    extended = by_plan.get(file.plan.extends or "", ())
    return Study(file, tuple(sweeps), tuple(extended), collect(sweeps))
