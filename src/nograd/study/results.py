"""What sweeps measured, by arm and seed, and what they do not have yet. Nothing is averaged here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nograd.errors import RunError
from nograd.run.config import results_bearing
from nograd.run.load import load
from nograd.run.resume import changes
from nograd.study.cell_state import CellState, inspect
from nograd.study.cells import Cell
from nograd.study.metrics import Measured, measure
from nograd.study.sweep_directory import Sweep

Values = Mapping[int, float]
"""Seed → number."""


@dataclass(frozen=True, eq=False)
class Results:
    """measured: label → seed → what a complete cell measured; only labels that a sweep plans.
    unfinished: (label, seed) → what is wrong with a cell that is not complete."""

    measured: Mapping[str, Mapping[int, Measured]]
    unfinished: Mapping[tuple[str, int], str]

    @property
    def labels(self) -> tuple[str, ...]:
        """The arms, in the order of the plans."""
        return tuple(self.measured)

    def values(self, metric: str, label: str) -> Values:
        """The metric of an arm by seed; NaN where a run has no such thing. Raises ConfigError for an unknown
        metric, RunError for an arm that no sweep has."""
        if label not in self.measured:
            raise RunError(f"no sweep has the arm {label!r}; they have {', '.join(self.labels)}")
        return {seed: measure(metric, measured) for seed, measured in self.measured[label].items()}


def collect(sweeps: Sequence[Sweep]) -> Results:
    """The cells of several sweeps as one set of results.

    Raises RunError if two sweeps ran one label with different settings, or hold the same cell with different
    results; the same cell with the same results counts once."""
    measured: dict[str, dict[int, Measured]] = {}
    unfinished: dict[tuple[str, int], str] = {}
    first: dict[str, tuple[Sweep, Cell]] = {}
    for sweep, state in _states(sweeps):
        cell = state.cell
        _check_settings(*first.setdefault(cell.label, (sweep, cell)), sweep, cell)
        seeds = measured.setdefault(cell.label, {})
        if state.measured is None:
            unfinished[cell.label, cell.seed] = state.text
        elif cell.seed not in seeds:
            seeds[cell.seed] = state.measured
        elif not np.array_equal(seeds[cell.seed].success, state.measured.success):
            raise RunError(
                f"{sweep.root} and another sweep both hold {cell.name}, with different results; leave one out"
            )
    missing = {key: text for key, text in unfinished.items() if key[1] not in measured[key[0]]}
    return Results({label: dict(sorted(seeds.items())) for label, seeds in measured.items()}, missing)


def frame(sweeps: Sequence[Sweep]) -> pd.DataFrame:
    """Tidy table, one row per run and generation, of every cell with a generation, half-finished ones too.

    Columns: those of `run.load` (a replay: generations, success and the evaluator's metrics), and before them
    plan, label (of the arm) and complete (whether the run has all its generations)."""
    tables = [_table(sweep, state) for sweep, state in _states(sweeps) if state.steps]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def metric_frame(results: Results, metrics: Iterable[str]) -> pd.DataFrame:
    """One row per label and seed, one column per metric."""
    names = list(metrics)
    rows: list[dict[str, Any]] = [
        {"label": label, "seed": seed} | {name: measure(name, measured) for name in names}
        for label, seeds in results.measured.items()
        for seed, measured in seeds.items()
    ]
    return pd.DataFrame(rows, columns=["label", "seed", *names])


def _states(sweeps: Sequence[Sweep]) -> Iterable[tuple[Sweep, CellState]]:
    return ((sweep, state) for sweep in sweeps for state in inspect(sweep))


def _check_settings(sweep: Sweep, cell: Cell, other_sweep: Sweep, other: Cell) -> None:
    changed = changes(results_bearing(cell.config) | {"seed": 0}, results_bearing(other.config) | {"seed": 0})
    if changed:
        key, (one, two) = next(iter(changed.items()))
        raise RunError(
            f"arm {cell.label!r} has {key} = {one!r} in {sweep.root} and {two!r} in {other_sweep.root}; "
            f"look at these sweeps apart"
        )


def _table(sweep: Sweep, state: CellState) -> pd.DataFrame:
    path = sweep.path(state.cell)
    table = load(path) if sweep.file.plan.replay is None else _replay_table(sweep, state)
    own = {"plan": sweep.file.name, "label": state.cell.label, "complete": state.kind == "complete"}
    return pd.concat([pd.DataFrame(own, index=table.index), table], axis="columns")


def _replay_table(sweep: Sweep, state: CellState) -> pd.DataFrame:
    assert state.measured is not None
    own = {"run": str(sweep.path(state.cell)), "seed": state.cell.seed}
    return pd.DataFrame(own | {"success": state.measured.success} | dict(state.measured.evaluator))
