"""What a sweep will cost: rollouts from its plan, time from earlier runs like its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from nograd.cli.cost import rollouts_per_generation
from nograd.errors import NogradError
from nograd.run import layout
from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.run.generation import read_generations
from nograd.run.progress import duration
from nograd.study.cells import Cell, cell_steps, step_rollouts
from nograd.study.plan import Plan

FOLDERS = (Path("runs"), Path("sweeps"))
"""Where earlier runs are looked for."""

TWO_CORES = {"synthetic": 5e-6, "smollm2-135m": 0.1}
"""Seconds per rollout where there is no earlier run to judge from, measured on two CPU cores (in-house tasks
for the model); by evaluator or model."""

WRITING = 0.01
"""Seconds that a generation takes beside its rollouts, mostly to be written safely."""


@dataclass(frozen=True)
class Pace:
    """Seconds per rollout, and where they were measured."""

    seconds: float
    where: str


Judge = Callable[[RunConfig], Pace | None]
"""A run's configuration → its pace, None if it is not known."""


@dataclass(frozen=True)
class Left:
    """What a cell still has to do."""

    cell: Cell
    steps: int
    rollouts: int


def describe(
    plan: Plan,
    states: Sequence[tuple[Cell, int]],
    workers: int = 1,
    source: Path | None = None,
    judge: Judge | None = None,
) -> str:
    """Runs, rollouts and time of the cells, each with the number of its steps that are done already.

    source: the sweep that a replay takes its coefficients from. judge: knows the pace of a run (default: `pace`)."""
    todo = [left for cell, done in states if (left := _left(plan, cell, done)).steps]
    arms, seeds = {cell.label for cell, _ in states}, {cell.seed for cell, _ in states}
    return (
        f"runs: {len(todo)} to do ({len(arms)} arms × {len(seeds)} seeds)\n"
        f"rollouts: {sum(left.rollouts for left in todo):,}\n"
        f"time: {_time(plan, todo, workers, source, judge or pace)}"
    )


def _left(plan: Plan, cell: Cell, done: int) -> Left:
    steps = cell_steps(plan, cell)
    return Left(cell, steps - done, step_rollouts(plan, cell, steps) - step_rollouts(plan, cell, done))


def pace(config: RunConfig, folders: Sequence[Path] = FOLDERS) -> Pace | None:
    """That of the newest run with the same evaluator, model and tasks, else a measurement that comes with
    nograd; None without either."""
    files = [file for folder in folders for file in folder.rglob(layout.CONFIG)]
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        found = _pace_of(file.parent, like=config)
        if found is not None:
            return found
    known = config.model.spec if config.evaluator == "agent" else config.evaluator
    return Pace(TWO_CORES[known], "two CPU cores") if known in TWO_CORES else None


def _time(plan: Plan, todo: Sequence[Left], workers: int, source: Path | None, judge: Judge) -> str:
    total, places = 0.0, set()
    paces: dict[str, Pace | None] = {}
    for left in todo:
        cell = left.cell
        key = repr((cell.config.evaluator, cell.config.model, cell.config.tasks.family))
        if key not in paces:
            paces[key] = judge(cell.config) if plan.replay is None else _source_pace(cell, source)
        found = paces[key]
        if found is None:
            return _unknown(plan, cell, source)
        total += left.rollouts * found.seconds + left.steps * WRITING
        places.add(found.where)
    if not todo:
        return "none"
    several = f" with one run at a time; {workers} at a time share the machine" if workers > 1 else ""
    return f"about {duration(total)} at the speed of {' and '.join(sorted(places))}{several}"


def _unknown(plan: Plan, cell: Cell, source: Path | None) -> str:
    if plan.replay is not None:
        what = source or f"a finished {plan.replay.source} sweep (--source)"
        return f"not known: it is judged from the runs of {what}"
    folders = " or ".join(f"{folder}/" for folder in FOLDERS)
    model, family = cell.config.model.spec, cell.config.tasks.family
    return f"not known: no earlier run of {model} on {family} in {folders}; try one generation first"


def _source_pace(cell: Cell, source: Path | None) -> Pace | None:
    return None if source is None else _pace_of(source / cell.folder)


def _pace_of(run: Path, like: RunConfig | None = None) -> Pace | None:
    """The pace of a run, None if it has none or is not like the configuration."""
    try:
        config = load_config(run / layout.CONFIG)
        records = read_generations(run) if like is None or alike(config, like) else []
    except NogradError:
        return None
    if not records:
        return None
    seconds = median(record.seconds["generation"] for record in records)
    return Pace(seconds / rollouts_per_generation(config), str(run))


def alike(one: RunConfig, other: RunConfig) -> bool:
    """Whether their rollouts take the same time."""
    same_model = one.evaluator != "agent" or one.model == other.model
    return one.evaluator == other.evaluator and one.tasks.family == other.tasks.family and same_model
