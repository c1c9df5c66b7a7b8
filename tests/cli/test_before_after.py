"""The before/after table and the choice of examples, from outcomes written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from nograd.agent.evaluator import Outcome
from nograd.cli.before_after import BeforeAfter, changed_examples, rate_rows
from nograd.search.evaluation import Evaluation
from nograd.tasks.in_house import InHouse, in_house

STAGES = ("planner", "selector", "caller", "synthesizer")
IN_HOUSE = in_house()


def outcome(success: float, blame: tuple[float, ...] | None, records: list[Any] | None = None) -> Outcome:
    metrics = {"tool_accuracy": 0.5, "call_ok": 0.25, "relay": float("nan")}
    return Outcome(Evaluation(success, success, success, blame, metrics), tuple(records or ()))


def test_success_and_what_was_lost_at_each_stage_add_up_to_all_tasks() -> None:
    pair = BeforeAfter(IN_HOUSE, outcome(0.2, (0.0, 0.5, 0.25, 0.25)), outcome(1.0, None))
    rows = {name: cells for name, *cells in rate_rows([pair], STAGES)}
    assert rows["success"] == ["0.20", "1.00"]
    assert rows["right answer after a good call"] == ["–", "–"]
    lost = [[float(cell) for cell in rows[f"lost at the {stage}"]] for stage in STAGES]
    assert lost == [[0, 0], [0.4, 0], [0.2, 0], [0.2, 0]]


def record(success: bool, **checks: bool) -> dict[str, Any]:
    return {"success": success, "checks": checks}


def test_examples_succeed_in_the_end_and_failed_in_different_places() -> None:
    tasks = IN_HOUSE.tasks[:6]
    wrong_tool, wrong_call = record(False, selector=False), record(False, selector=True, caller=False)
    right = record(True, selector=True, caller=True)
    before = [right, right, wrong_tool, wrong_tool, wrong_call, wrong_tool]
    after = [right, wrong_tool, right, right, right, wrong_call]
    few = InHouse("few", tuple(tasks), IN_HOUSE.examples, IN_HOUSE.tools)
    pair = BeforeAfter(few, outcome(0, None, before), outcome(0, None, after))
    chosen = [tasks.index(task) for task, _, _ in changed_examples(pair, 9)]
    assert chosen == [2, 4, 3, 1], "unchanged ones never; one per place first; the one that got worse last"
    assert len(changed_examples(pair, 3)) == 3


@pytest.mark.parametrize(("seconds", "said"), [(3.4, "3 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")])
def test_durations(seconds: float, said: str) -> None:
    from nograd.run.progress import duration

    assert duration(seconds) == said
