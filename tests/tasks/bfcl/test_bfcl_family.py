"""The families as the agent sees them: gold calls work, failed ones tell no gold, answers are checked."""

from collections.abc import Iterator
from typing import Any

import pytest

from nograd.errors import ConfigError
from nograd.tasks.bfcl.data import Entry
from nograd.tasks.bfcl.family import REFUSED, Bfcl, echo_answer
from nograd.tasks.family import Task, TaskFamily

pytestmark = pytest.mark.usefixtures("entries")
VARIANTS = [
    ("bfcl", {}, 48),
    ("bfcl_echo", {"echo": True}, 48),
    ("bfcl_heldout", {"heldout": True}, 96),
    ("bfcl_echo_heldout", {"heldout": True, "echo": True}, 96),
]


@pytest.mark.parametrize(("name", "options", "size"), VARIANTS)
def test_contract(name: str, options: dict[str, Any], size: int) -> None:
    family: TaskFamily = Bfcl(**options)
    assert (family.name, len(family.tasks)) == (name, size)
    worked = [example.task for example in family.examples]
    for task in [*family.tasks, *worked]:
        result = family.call(task, task.tool, task.arguments)
        assert result.ok
        assert result.output == task.tool_output
        assert task.answer in task.tool_output
        assert family.succeeded(task, f' "{task.answer.lower()}". ')
        assert not family.succeeded(task, task.answer + " indeed")
        assert task.tool in task.offered
        for tool in task.offered:
            spec = family.tool(tool)
            assert spec is not None
            assert spec.name == tool
            assert "\n" not in "".join([spec.description, *spec.parameters.values()])
        gold_tool = family.tool(task.tool)
        assert gold_tool is not None
        assert set(task.arguments) <= set(gold_tool.parameters)
    assert family.tool("no such tool") is None


def test_examples_are_none_of_the_benchmarks(entries: tuple[Entry, ...]) -> None:
    family = Bfcl()
    names = {entry.name.casefold() for entry in entries}
    questions = {entry.question for entry in entries}
    for example in family.examples:
        assert not {name.casefold() for name in example.task.offered} & names
        assert example.task.question not in questions
        assert example.plan


def test_sides_differ_and_variants_share_their_tasks() -> None:
    training, heldout, echo = Bfcl(), Bfcl(heldout=True), Bfcl(echo=True)
    assert not {task.tool for task in training.tasks} & {task.tool for task in heldout.tasks}
    assert not {n for t in training.tasks for n in t.offered} & {n for t in heldout.tasks for n in t.offered}
    assert [task.id for task in training.tasks] == [task.id for task in echo.tasks]
    assert [task.offered for task in training.tasks] == [task.offered for task in echo.tasks]


def test_constant_and_echo_answers() -> None:
    assert {task.answer for task in Bfcl().tasks} == {"CORRECT"}
    answers = [task.answer for task in (*Bfcl(echo=True).tasks, *Bfcl(echo=True, heldout=True).tasks)]
    assert len(set(answers)) >= len(answers) - 4
    assert echo_answer("simple_python_140") == "velvet 265"  # fixed across versions and machines


def wrong_values(task: Task) -> Iterator[dict[str, Any]]:
    """The gold arguments with one value replaced by another of the same type."""
    for name, value in task.arguments.items():
        other: Any = {str: "quite another", int: 987654, float: 0.1234, bool: not value}.get(type(value))
        if other is not None:
            yield {**task.arguments, name: other}


def test_wrong_values_get_one_neutral_sentence() -> None:
    family = Bfcl(heldout=True)
    for task in family.tasks:
        for arguments in wrong_values(task):
            assert family.call(task, task.tool, arguments).error == REFUSED


def test_errors_do_not_depend_on_gold() -> None:
    """A task to which the same tool is a distractor, whose gold is another, answers with the same errors."""
    family, compared = Bfcl(), 0
    for task in family.tasks:
        for twin in family.tasks:
            if task.tool == twin.tool or task.tool not in twin.offered:
                continue
            for arguments in [{}, {"unknown": 1}, *wrong_values(task), dict.fromkeys(task.arguments)]:
                assert family.call(task, task.tool, arguments) == family.call(twin, task.tool, arguments)
                compared += 1
    assert compared > 500


def test_schema_errors_reach_the_caller() -> None:
    family = Bfcl()
    task = next(task for task in family.tasks if len(task.arguments) > 1)
    first = next(iter(task.arguments))
    assert family.call(task, task.tool, {}).error == f"missing required parameter {first!r}"
    assert "unknown parameter 'colour'" in family.call(task, task.tool, {**task.arguments, "colour": 1}).error
    assert "no such tool" in family.call(task, "no_such_tool", task.arguments).error


def test_calls_never_raise_on_odd_arguments() -> None:
    family = Bfcl()
    task = family.tasks[0]
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    for value in (None, deep, float("nan"), 10**5000, "\ud800", {"": {}}):
        for tool in (*task.offered, "", "\ud800"):
            assert not family.call(task, tool, dict.fromkeys(task.arguments, value)).ok


def test_impossible_numbers_of_distractors_are_refused() -> None:
    for distractors in (-1, 48):
        with pytest.raises(ConfigError, match=f"distractors is {distractors}; this family allows 0 to 47"):
            Bfcl(distractors=distractors)
