"""Which tasks went another way in two runs' recorded trajectories, and where: the requests that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from nograd.run.load import RunRecord
from nograd.run.strict_json import dumps

Record = Mapping[str, Any]


@dataclass(frozen=True)
class ChangedTask:
    """The first thing in which two trajectories on a task differ.

    step: number of the step, from 0; None if it is in no step, or the evaluator records none. what: the stage
    that wrote it, else the key of the record. a, b: the text of both sides; None where there is none.
    success: of both sides, None where it is not recorded.
    """

    task: str
    step: int | None
    what: str
    a: str | None
    b: str | None
    success: tuple[bool | None, bool | None]


@dataclass(frozen=True)
class ChangedTrajectories:
    """The center's trajectories of one generation. tasks: those that both have. only_a, only_b: others."""

    generation: int
    tasks: int
    changed: tuple[ChangedTask, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    @property
    def gained(self) -> int:
        """Tasks that a failed and b did."""
        return sum(task.success == (False, True) for task in self.changed)

    @property
    def lost(self) -> int:
        """Tasks that a did and b failed."""
        return sum(task.success == (True, False) for task in self.changed)


def changed_trajectories(a: RunRecord, b: RunRecord, which: str) -> ChangedTrajectories | None:
    """Compare the "first" or the "newest" trajectories; None if a run has none, or theirs are of different
    generations."""
    one, other = a.trajectories(which), b.trajectories(which)
    if not one or not other or one[0]["generation"] != other[0]["generation"]:
        return None
    left, right = _by_task(one), _by_task(other)
    both = [task for task in left if task in right]
    changes = [_change(task, left[task], right[task]) for task in both]
    return ChangedTrajectories(
        generation=one[0]["generation"],
        tasks=len(both),
        changed=tuple(change for change in changes if change is not None),
        only_a=tuple(task for task in left if task not in right),
        only_b=tuple(task for task in right if task not in left),
    )


def _by_task(records: Sequence[Record]) -> dict[str, Record]:
    """By the task's name; by its place in the batch where it has none."""
    return {str(record.get("task", place)): record for place, record in enumerate(records)}


def _change(task: str, a: Record, b: Record) -> ChangedTask | None:
    if dumps(a) == dumps(b):
        return None
    success = (a.get("success"), b.get("success"))
    steps = list(zip_longest(a.get("steps", ()), b.get("steps", ())))
    for number, (left, right) in enumerate(steps):
        if left != right:
            return ChangedTask(task, number, (left or right)["stage"], *_texts(left, right), success)
    key = next(key for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key))
    return ChangedTask(task, None, key, _plain(a.get(key)), _plain(b.get(key)), success)


def _texts(a: Record | None, b: Record | None) -> tuple[str | None, str | None]:
    """What the stage wrote; if that is the same, what came of it."""
    same = a is not None and b is not None and a["text"] == b["text"]
    key = "outcome" if same else "text"
    return None if a is None else a[key], None if b is None else b[key]


def _plain(value: Any) -> str | None:
    return None if value is None else str(value)
