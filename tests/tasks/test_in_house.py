"""The in-house families: every gold call works, pools, held-out set and examples share nothing."""

import hashlib

import pytest

from nograd.errors import ConfigError, TaskError
from nograd.tasks.family import Task, TaskFamily
from nograd.tasks.in_house import in_house, in_house_heldout
from nograd.tasks.normalise import normalise
from nograd.tasks.registry import FAMILIES, family

POOL = in_house()
HELDOUT = in_house_heldout()
BOTH = pytest.mark.parametrize("tasks_of", [POOL, HELDOUT], ids=lambda each: each.name)


def entity(task: Task) -> str | None:
    return task.arguments.get("entity")


@BOTH
def test_the_gold_call_gives_the_gold_output_and_answer(tasks_of: TaskFamily):
    for task in [*tasks_of.tasks, *(example.task for example in tasks_of.examples)]:
        result = tasks_of.call(task, task.tool, task.arguments)
        assert result.ok
        assert result.output == task.tool_output
        assert tasks_of.succeeded(task, task.answer)
        assert tasks_of.succeeded(task, f' "{task.answer.upper()}". ')
        assert not tasks_of.succeeded(task, "")
        assert not tasks_of.succeeded(task, task.question)


@BOTH
def test_answers_are_short_and_gold_tools_offered(tasks_of: TaskFamily):
    for task in tasks_of.tasks:
        assert len(task.answer) <= 12
        assert len(task.question) <= 80
        assert task.tool in task.offered
        assert all(tasks_of.tool(name) is not None for name in task.offered)
    assert len({task.id for task in tasks_of.tasks}) == len(tasks_of.tasks)


@pytest.mark.parametrize(("tasks_of", "calculations", "lookups"), [(POOL, 20, 12), (HELDOUT, 40, 24)])
def test_sizes(tasks_of: TaskFamily, calculations: int, lookups: int):
    tools = [task.tool for task in tasks_of.tasks]
    assert tools == ["calculator"] * calculations + ["lookup"] * lookups


def test_pool_heldout_and_examples_share_nothing():
    groups = [POOL.tasks, HELDOUT.tasks, tuple(example.task for example in POOL.examples)]
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            assert not {normalise(t.question) for t in first} & {normalise(t.question) for t in second}
            assert not {entity(t) for t in first} & {entity(t) for t in second} - {None}
            assert not {str(t.arguments) for t in first} & {str(t.arguments) for t in second}
    seen = {normalise(task.answer) for task in [*groups[0], *groups[2]]}
    assert not seen & {normalise(task.answer) for task in HELDOUT.tasks}


def test_within_a_set_questions_and_entities_are_distinct():
    for tasks in (POOL.tasks, HELDOUT.tasks):
        assert len({normalise(task.question) for task in tasks}) == len(tasks)
        entities = [entity(task) for task in tasks if entity(task)]
        assert len(set(entities)) == len(entities)


def test_the_heldout_set_is_fixed():
    assert in_house_heldout().tasks == HELDOUT.tasks
    content = repr([(task.question, dict(task.arguments), task.answer) for task in HELDOUT.tasks])
    # A new digest means that earlier held-out results can no longer be compared.
    assert hashlib.sha256(content.encode()).hexdigest()[:16] == "cedbb1b93acc37cc"


def test_examples_show_every_tool_and_the_first_ones_all_differ():
    tools = [example.task.tool for example in POOL.examples]
    assert set(tools[:4]) == set(POOL.tasks[0].offered)
    assert all(2 <= tools.count(name) <= 3 for name in set(tools))
    assert all(example.plan for example in POOL.examples)


def test_a_wrong_call_is_a_failed_call_that_does_not_hold_gold():
    for task in POOL.tasks:
        for tool in ("calculator", "lookup", "convert", "weekday", "nonsense", ""):
            for arguments in ({}, {"expression": "x"}, {"entity": "zzz", "attribute": "zzz"}, {"date": 3}):
                result = POOL.call(task, tool, arguments)
                assert not result.ok
                assert task.answer not in result.error.split()
                assert str(entity(task)) not in result.error


def test_fewer_tools_can_be_offered():
    small = in_house(offered=("lookup", "calculator"))
    assert small.tasks[0].offered == ("lookup", "calculator")
    assert small.tool("weekday") is None
    assert {example.task.tool for example in small.examples} == {"calculator", "lookup"}
    assert "unknown tool 'weekday'" in small.call(small.tasks[0], "weekday", {"date": "2024-03-15"}).error


def test_bad_offers_are_refused():
    with pytest.raises(ConfigError, match="unknown tool 'calculater'; did you mean 'calculator'"):
        in_house(offered=("calculater",))
    with pytest.raises(TaskError, match="need calculator and lookup"):
        in_house(offered=("calculator", "weekday"))


@pytest.mark.parametrize("name", ["in_house", "in_house_heldout"])
def test_the_registry_builds_what_it_lists(name: str):
    info = FAMILIES[name].info
    built = family(name)
    assert built.name == info.name == name
    assert len(built.tasks) == info.size
    assert built.tasks == family(name.replace("_", "-")).tasks
    assert family(name, offered=("calculator", "lookup")).tasks[0].offered == ("calculator", "lookup")


def test_registry_errors_name_what_is_known():
    with pytest.raises(ConfigError, match="unknown task family 'in_hous'; did you mean 'in_house'"):
        family("in_hous")
    with pytest.raises(ConfigError, match="no option 'tools'; it takes offered"):
        family("in_house", tools=())
