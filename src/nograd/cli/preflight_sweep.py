"""What the sweep of a plan costs, at the speed that a preflight measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nograd.cli.cost import rollouts_per_generation
from nograd.cli.sweep_cost import Pace, alike, describe, pace
from nograd.cli.sweep_scaling import check_cells, make_scaling
from nograd.preflight.finding import Finding
from nograd.run.config import RunConfig
from nograd.study.cells import Cell, cells
from nograd.study.plan import Plan
from nograd.study.plan_file import load_plan


@dataclass(frozen=True)
class Sweep:
    """A plan by its name, with the runs of its sweep."""

    name: str
    plan: Plan
    cells: tuple[Cell, ...]


def planned_sweep(plan: str, model: str | None, generations: int | None) -> Sweep:
    """What `nograd sweep` would run. Raises NogradError for what it would refuse."""
    file = load_plan(plan)
    planned = cells(file.plan, make_scaling(model, None, generations, None, None, []))
    check_cells(planned)
    return Sweep(file.name, file.plan, planned)


def price(sweep: Sweep, config: RunConfig, findings: Sequence[Finding]) -> Finding:
    """Runs, rollouts and time. Runs like the configuration are judged by the preflight's own finding of the cost,
    the others as `nograd sweep --dry-run` does."""
    figures = next(finding.figures for finding in findings if finding.detector == "cost")
    seconds = figures["seconds_per_generation"]
    assert isinstance(seconds, float)
    here = Pace(seconds / rollouts_per_generation(config), "this preflight")

    def judge(cell: RunConfig) -> Pace | None:
        return here if alike(cell, config) else pace(cell)

    told = describe(sweep.plan, [(cell, 0) for cell in sweep.cells], judge=judge)
    return Finding("cost", None, "ok", f"sweep {sweep.name}: {'; '.join(told.splitlines())}")
