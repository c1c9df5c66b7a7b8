"""Run a sweep: every cell that is not finished, whatever dies; again and again until all are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nograd.errors import RunError
from nograd.run.evaluators import build_evaluator
from nograd.run.files import append_line, disk_errors
from nograd.run.lock import locked
from nograd.run.strict_json import dumps
from nograd.study.cell_state import CellState, inspect
from nograd.study.executors import Executor, make_executor
from nograd.study.progress import Meter, OnProgress
from nograd.study.sweep_directory import Sweep
from nograd.study.work import Build, Event, Job

FAILURES = "failures.jsonl"
"""One line per cell that failed: cell, when, why, traceback."""


class SweepInterruptedError(RunError):
    """Ctrl-C: all workers have stopped, and everything finished so far is kept."""


@dataclass(frozen=True)
class SweepOutcome:
    """complete: names of the finished cells, those of earlier sessions included. failed: cell → why it was
    given up or cannot be used."""

    root: Path
    complete: tuple[str, ...]
    failed: Mapping[str, str]

    @property
    def finished(self) -> bool:
        """Whether the sweep has all its cells."""
        return not self.failed


def run_sweep(
    sweep: Sweep,
    executor: Executor | None = None,
    *,
    build: Build = build_evaluator,
    on_progress: OnProgress | None = None,
) -> SweepOutcome:
    """Run all cells that are missing or half-finished; a failure of one does not stop the others.

    Damaged cells are left as they are, and named. Raises RunError if another process runs this sweep,
    SweepInterruptedError on Ctrl-C."""
    with locked(sweep.root):
        session = _Session(sweep, on_progress)
        try:
            (executor or make_executor()).execute(session.jobs, build, session.on_event)
        except KeyboardInterrupt:
            raise SweepInterruptedError(session.farewell()) from None
        return session.outcome()


class _Session:
    """What happens in one call of `run_sweep`."""

    def __init__(self, sweep: Sweep, on_progress: OnProgress | None) -> None:
        states = inspect(sweep)
        self._sweep = sweep
        self._meter = Meter(sweep.file.plan, states)
        self._on_progress = on_progress
        self._complete = [state.cell.name for state in states if state.kind == "complete"]
        self._failed = {state.cell.name: state.problem or "" for state in states if state.kind == "damaged"}
        self.jobs = [_job(sweep, state) for state in states if state.kind in ("missing", "half-finished")]
        self._show(None)

    def on_event(self, event: Event) -> None:
        if event.kind == "done":
            self._complete.append(event.job)
        elif event.kind == "failed":
            self._failed[event.job] = event.text
            self._write_down(event)
        self._show(event)

    def outcome(self) -> SweepOutcome:
        return SweepOutcome(self._sweep.root, tuple(sorted(self._complete)), dict(self._failed))

    def farewell(self) -> str:
        return (
            f"stopped with {len(self._complete)} of {len(self._sweep.cells)} cells complete; nothing is "
            f"lost, resume the sweep {self._sweep.root} to go on"
        )

    def _show(self, event: Event | None) -> None:
        progress = self._meter.count(event)
        if self._on_progress is not None:
            self._on_progress(progress)

    def _write_down(self, event: Event) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        line = {"cell": event.job, "at": at, "why": event.text, "traceback": event.detail}
        with disk_errors():
            append_line(self._sweep.root / FAILURES, dumps(line))


def _job(sweep: Sweep, state: CellState) -> Job:
    plan = sweep.file.plan
    return Job(state.cell, sweep.path(state.cell), plan.replay, sweep.source, plan.heldout)
