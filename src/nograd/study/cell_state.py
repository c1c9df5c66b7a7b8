"""How far the cells of a sweep are: missing, half-finished, complete or damaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nograd.errors import NogradError, RunError
from nograd.run import layout
from nograd.run.config import results_bearing
from nograd.run.evaluations import read_evaluations
from nograd.run.load import RunRecord, load_run
from nograd.run.resume import changes
from nograd.study.cells import Cell, cell_steps
from nograd.study.metrics import Measured
from nograd.study.replay import REPLAY, read_replay
from nograd.study.sweep_directory import Sweep

Kind = Literal["missing", "half-finished", "complete", "damaged"]


@dataclass(frozen=True, eq=False)
class CellState:
    """steps: how many of `planned` are done. measured: what a complete cell measured. problem: what is wrong
    with a damaged one, in one sentence."""

    cell: Cell
    kind: Kind
    steps: int
    planned: int
    measured: Measured | None = None
    problem: str | None = None

    @property
    def text(self) -> str:
        """One phrase, e.g. "soft/seed-0003 is half-finished (12 of 45)"."""
        if self.kind == "damaged":
            return f"{self.cell.name} is damaged: {self.problem}"
        counts = f" ({self.steps} of {self.planned})" if self.kind == "half-finished" else ""
        return f"{self.cell.name} is {self.kind}{counts}"


def inspect(sweep: Sweep) -> tuple[CellState, ...]:
    """The state of every cell, in the plan's order. Reads all of it; never raises for what it finds there."""
    return tuple(inspect_cell(sweep, cell) for cell in sweep.cells)


def inspect_cell(sweep: Sweep, cell: Cell) -> CellState:
    """The state of one cell."""
    planned = cell_steps(sweep.file.plan, cell)
    try:
        if sweep.file.plan.replay is not None:
            return _replayed(sweep, cell, planned)
        if not layout.holds_run(sweep.path(cell)):
            return CellState(cell, "missing", 0, planned)
        run = load_run(sweep.path(cell))
        _check_same(run, cell)
        heldout = _heldout(sweep, run)
    except NogradError as error:
        return CellState(cell, "damaged", 0, planned, problem=str(error))
    steps = len(run.generations) + len(heldout)
    if steps < planned:
        return CellState(cell, "half-finished", steps, planned)
    return CellState(cell, "complete", planned, planned, measured_of(run, heldout))


def unfinished(states: Iterable[CellState]) -> tuple[str, ...]:
    """A phrase for every cell that is not complete."""
    return tuple(state.text for state in states if state.kind != "complete")


def measured_of(run: RunRecord, heldout: Sequence[float] = ()) -> Measured:
    """What a run measured, as arrays. heldout: success of the evaluated coefficients, θ = 0 first."""
    names = {name for record in run.generations for name in record.metrics}
    return Measured(
        modules=run.modules,
        success=run.array("success"),
        evaluator={
            name: np.array([record.metrics.get(name, np.nan) for record in run.generations], np.float64)
            for name in names
        },
        allocation=run.array("allocation").astype(np.float64),
        step_norms=run.array("step_applied"),
        credit=run.array("credit_before"),
        heldout=np.array(heldout, np.float64),
    )


def _heldout(sweep: Sweep, run: RunRecord) -> list[float]:
    """Success of those coefficients that the plan wants evaluated and that are, in order."""
    plan = sweep.file.plan.heldout
    if plan is None or not run.complete:
        return []
    records = read_evaluations(run, plan.family)
    return [records[after].success for after in plan.after(len(run.generations)) if after in records]


def _replayed(sweep: Sweep, cell: Cell, planned: int) -> CellState:
    if not (sweep.path(cell) / REPLAY).exists():
        return CellState(cell, "missing", 0, planned)
    return CellState(cell, "complete", planned, planned, read_replay(cell, sweep.path(cell)))


def _check_same(run: RunRecord, cell: Cell) -> None:
    changed = changes(results_bearing(cell.config), results_bearing(run.config))
    if changed:
        key, (planned, found) = next(iter(changed.items()))
        raise RunError(
            f"{run.path} was run with {key} = {found!r} where the plan has {planned!r}; move it out of the "
            f"sweep and resume"
        )
