"""What a sweep will cost: rollouts from its plan, time from earlier runs like its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from nograd.cli.cost import rollouts_per_generation
from nograd.errors import NogradError
from nograd.run import layout
from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.run.generation import read_generations
from nograd.run.progress import duration
from nograd.study.cells import Cell, cell_rollouts, step_rollouts
from nograd.study.plan import Plan

FOLDERS = (Path("runs"), Path("sweeps"))
"""Where earlier runs are looked for."""

TWO_CORES = {"synthetic": 2e-4, "smollm2-135m": 0.06}
"""Seconds per rollout where there is no earlier run to judge from, measured on two CPU cores (in-house tasks
for the model); by evaluator or model."""


def describe(plan: Plan, states: Sequence[tuple[Cell, int]], workers: int = 1) -> str:
    """Runs, rollouts and time of the cells, each with the number of its steps that are done already."""
    costs = [(cell, cell_rollouts(plan, cell) - steps * step_rollouts(plan, cell)) for cell, steps in states]
    rollouts = sum(count for _, count in costs)
    runs = sum(count > 0 for _, count in costs)
    arms = len({cell.label for cell, _ in costs})
    seeds = len({cell.seed for cell, _ in costs})
    return (
        f"runs: {runs} to do ({arms} arms × {seeds} seeds)\n"
        f"rollouts: {rollouts:,}\n"
        f"time: {_time(costs, workers)}"
    )


def _time(costs: Sequence[tuple[Cell, int]], workers: int) -> str:
    total, sources = 0.0, set()
    paces: dict[str, tuple[float, str] | None] = {}
    for cell, count in costs:
        key = repr((cell.config.evaluator, cell.config.model, cell.config.tasks.family))
        if key not in paces:
            paces[key] = seconds_per_rollout(cell.config)
        pace = paces[key]
        if pace is None:
            return (
                f"not known: no earlier run of {cell.config.model.spec} on {cell.config.tasks.family} in "
                f"{' or '.join(f'{folder}/' for folder in FOLDERS)}; try one generation with 'nograd run'"
            )
        total += count * pace[0]
        sources.add(pace[1])
    several = f" with one run at a time; {workers} at a time share the machine" if workers > 1 else ""
    return f"about {duration(total)} at the speed of {' and '.join(sorted(sources)) or 'nothing'}{several}"


def seconds_per_rollout(config: RunConfig, folders: Sequence[Path] = FOLDERS) -> tuple[float, str] | None:
    """Seconds per rollout and where the number comes from: the newest run with the same evaluator, model and
    tasks, else a measurement that nograd comes with; None without either."""
    files = [file for folder in folders for file in folder.rglob(layout.CONFIG)]
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        try:
            other, records = load_config(file), read_generations(file.parent)
        except NogradError:
            continue
        if records and _alike(config, other):
            seconds = median(record.seconds["generation"] for record in records)
            return seconds / rollouts_per_generation(other), str(file.parent)
    known = config.model.spec if config.evaluator == "agent" else config.evaluator
    return (TWO_CORES[known], "two CPU cores") if known in TWO_CORES else None


def _alike(config: RunConfig, other: RunConfig) -> bool:
    return (
        other.evaluator == config.evaluator
        and (config.evaluator != "agent" or other.model == config.model)
        and other.tasks.family == config.tasks.family
    )
