"""How far a whole sweep is, and how long it will still take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic

from nograd.study.cell_state import CellState
from nograd.study.cells import Cell, step_rollouts
from nograd.study.plan import Plan
from nograd.study.work import Event


@dataclass(frozen=True)
class Progress:
    """A sweep at one moment. cells, rollouts: (done, all). failed: cells given up. seconds_left: at the speed
    of this session so far; None before its first step. event: what just happened."""

    cells: tuple[int, int]
    failed: int
    rollouts: tuple[int, int]
    seconds: float
    seconds_left: float | None
    event: Event | None


OnProgress = Callable[[Progress], None]


class Meter:
    """Counts the steps of a session. clock: seconds, for the tests."""

    def __init__(self, plan: Plan, states: tuple[CellState, ...], clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._plan = plan
        self._cells: Mapping[str, Cell] = {state.cell.name: state.cell for state in states}
        self._planned = {state.cell.name: state.planned for state in states}
        self._steps = {state.cell.name: state.steps for state in states}
        self._before = self._rollouts(self._steps)
        self._complete = {state.cell.name for state in states if state.kind == "complete"}
        self._failed = {state.cell.name for state in states if state.kind == "damaged"}

    def count(self, event: Event | None = None) -> Progress:
        """Take an event into account; where the sweep stands after it."""
        if event is not None:
            self._take(event)
        done, total = self._rollouts(self._steps), self._rollouts(self._planned)
        given_up = sum(self._of(name, self._planned[name]) - self._of(name, self._steps[name]) for name in self._failed)
        seconds = self._clock() - self._start
        fresh = done - self._before
        return Progress(
            cells=(len(self._complete), len(self._planned)),
            failed=len(self._failed),
            rollouts=(done, total),
            seconds=seconds,
            seconds_left=seconds / fresh * (total - done - given_up) if fresh else None,
            event=event,
        )

    def _take(self, event: Event) -> None:
        if event.kind == "step" and event.step is not None:
            self._steps[event.job] = max(self._steps[event.job], event.step + 1)
        elif event.kind == "done":
            self._complete.add(event.job)
        elif event.kind == "failed":
            self._failed.add(event.job)

    def _rollouts(self, steps: Mapping[str, int]) -> int:
        return sum(self._of(name, count) for name, count in steps.items())

    def _of(self, name: str, steps: int) -> int:
        return step_rollouts(self._plan, self._cells[name], steps)
