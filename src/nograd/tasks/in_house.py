"""The in-house families: arithmetic and knowledge lookups, one call of one tool each (paper, §4).

Two pools over the same tools and worked examples: `in_house` to tune on, `in_house_heldout` to evaluate on.
The gold tool output and answer of every task are computed by the gold call itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nograd.errors import TaskError, unknown_name
from nograd.tasks import in_house_heldout as heldout
from nograd.tasks import in_house_pool as pool
from nograd.tasks.family import Example, Task, ToolResult, ToolSpec
from nograd.tasks.in_house_pool import Question
from nograd.tasks.normalise import same_answer
from nograd.tasks.toolbox import toolbox
from nograd.tasks.tools import Tool, execute

OFFERED = ("lookup", "weekday", "calculator")
"""What is offered by default: the two tools that the tasks need, and one that none of them does."""


@dataclass(frozen=True)
class InHouse:
    """A TaskFamily whose tools run in this process."""

    name: str
    tasks: tuple[Task, ...]
    examples: tuple[Example, ...]
    tools: Mapping[str, Tool]

    def tool(self, name: str) -> ToolSpec | None:
        return self.tools[name].spec if name in self.tools else None

    def call(self, task: Task, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        if tool not in task.offered:
            known = ", ".join(task.offered)
            return ToolResult(ok=False, error=f"unknown tool {tool[:20]!r}; there is {known}")
        return execute(self.tools[tool], arguments)

    def succeeded(self, task: Task, answer: str) -> bool:
        return same_answer(task.answer, answer)


def in_house(offered: Sequence[str] | None = None) -> InHouse:
    """The 32 tasks to tune on. offered: names of the tools to choose from (default: OFFERED)."""
    return _family("in_house", pool.QUESTIONS, offered)


def in_house_heldout(offered: Sequence[str] | None = None) -> InHouse:
    """64 newly generated tasks with questions, entities and answers that the pool and the examples lack."""
    return _family("in_house_heldout", heldout.questions(), offered)


def _family(name: str, questions: Sequence[Question], offered: Sequence[str] | None) -> InHouse:
    tools = _choose(offered)
    return InHouse(
        name=name,
        tasks=tuple(_task(f"{name}-{index:02d}", each, tools) for index, each in enumerate(questions)),
        examples=tuple(
            Example(_task(f"example-{index}", question, tools), plan)
            for index, (question, plan) in enumerate(pool.EXAMPLES)
            if question.tool in tools
        ),
        tools=tools,
    )


def _choose(offered: Sequence[str] | None) -> Mapping[str, Tool]:
    """The offered tools, in the order in which they were named."""
    tools = toolbox()
    names = OFFERED if offered is None else tuple(offered)
    for name in names:
        if name not in tools:
            raise unknown_name("tool", name, tools)
    if not {"calculator", "lookup"} <= set(names):
        raise TaskError(
            f"the tasks need calculator and lookup, but {', '.join(names)!r} is offered; add them"
        )
    return {name: tools[name] for name in names}


def _task(id: str, question: Question, tools: Mapping[str, Tool]) -> Task:
    result = execute(tools[question.tool], question.arguments)
    if not result.ok:
        raise TaskError(f"the gold call of {question.text!r} fails ({result.error}); correct its arguments")
    return Task(
        id=id,
        question=question.text,
        answer=result.output,
        tool=question.tool,
        arguments=question.arguments,
        tool_output=result.output,
        offered=tuple(tools),
    )
