"""The untouched and the tuned agent on a whole task family, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.agent.evaluator import AgentEvaluator, Outcome
from nograd.run.config import RunConfig
from nograd.run.rebuild import on_tasks
from nograd.search.evaluation import Evaluation
from nograd.tasks.family import Task, TaskFamily

RATES = {
    "success": "success",
    "tool_accuracy": "right tool",
    "call_ok": "call ok",
    "relay": "right answer after a good call",
}


@dataclass(frozen=True)
class BeforeAfter:
    """Both agents on the same tasks."""

    family: TaskFamily
    before: Outcome
    after: Outcome


def compare(
    evaluator: AgentEvaluator, config: RunConfig, family: TaskFamily, theta: NDArray[np.float32]
) -> BeforeAfter:
    """θ = 0 and this θ on all tasks of a family; the model of the evaluator is used again."""
    both = np.stack([np.zeros_like(theta), theta])
    return BeforeAfter(family, *on_tasks(evaluator, config, family).outcomes(family.tasks, both))


def rate_rows(pairs: Iterable[BeforeAfter], modules: Sequence[str]) -> list[list[str]]:
    """Rows of the before/after table: a rate, then before and after on each family."""
    several = list(pairs)
    rows = [
        [label, *_cells(several, lambda e, name=name: e.success if name == "success" else e.metrics[name])]
        for name, label in RATES.items()
    ]
    for index, module in enumerate(modules):
        rows.append([f"lost at the {module}", *_cells(several, lambda e, index=index: _lost(e, index))])
    return rows


def changed_examples(pair: BeforeAfter, count: int) -> list[tuple[Task, Any, Any]]:
    """Tasks whose outcome changed, with both records: those that came to succeed first, and of these one per
    place where they had failed before a second from the same place."""
    both = list(zip(pair.family.tasks, pair.before.records, pair.after.records, strict=True))
    changed = [item for item in both if item[1]["success"] != item[2]["success"]]
    seen: dict[object, int] = {}
    ranked = []
    for position, item in enumerate(changed):
        place = next((stage for stage, ok in item[1]["checks"].items() if not ok), "answer")
        seen[place] = seen.get(place, 0) + 1
        ranked.append((not item[2]["success"], seen[place], position, item))
    return [item for *_, item in sorted(ranked, key=lambda entry: entry[:3])][:count]


def _cells(pairs: Sequence[BeforeAfter], value: Any) -> list[str]:
    from nograd.cli.output import share

    return [share(value(o.evaluation)) for pair in pairs for o in (pair.before, pair.after)]


def _lost(evaluation: Evaluation, module: int) -> float:
    """Share of all tasks that failed and are blamed on the module."""
    return 0.0 if evaluation.blame is None else (1 - evaluation.success) * evaluation.blame[module]
