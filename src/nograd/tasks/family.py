"""Tasks, tools and task families: one question with its gold targets; a named set of tasks with its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class ToolSpec:
    """What an agent is told of a tool. parameters maps a name to a one-line description with its type."""

    name: str
    description: str
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class ToolResult:
    """Outcome of one tool call: output if ok, else an error text that can be shown to the caller
    (it names what is allowed and never contains gold)."""

    ok: bool
    output: str = ""
    error: str = ""


@dataclass(frozen=True)
class Task:
    """One question with its gold targets.

    tool, arguments: the gold call. tool_output: what the gold call returns. answer: the gold final answer.
    offered: names of the tools the agent may choose from, gold included, in a fixed order.
    relay: the answer is a text that only an accepted call hands out; without one no answer is right.
    """

    id: str
    question: str
    answer: str
    tool: str
    arguments: Mapping[str, Any]
    tool_output: str
    offered: tuple[str, ...]
    relay: bool = False


@dataclass(frozen=True)
class Example:
    """A worked task for few-shot prompts; never one of the family's tasks."""

    task: Task
    plan: str


class TaskFamily(Protocol):
    """A named set of tasks with its tools."""

    @property
    def name(self) -> str: ...

    @property
    def tasks(self) -> Sequence[Task]: ...

    @property
    def examples(self) -> Sequence[Example]:
        """Worked examples for the prompts; their tools are among the family's."""
        ...

    def tool(self, name: str) -> ToolSpec | None:
        """The tool of this name, or None if there is none."""
        ...

    def call(self, task: Task, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Execute one parsed call for this task. Never raises on bad arguments: that is a failed call."""
        ...

    def succeeded(self, task: Task, answer: str) -> bool:
        """Whether the final answer is right (exact match of the normalised answer, DESIGN §4)."""
        ...


@dataclass(frozen=True)
class FamilyInfo:
    """A row of `nograd tasks`: name, number of tasks (None: as many as a file has), one line of description."""

    name: str
    size: int | None
    description: str
    notes: Mapping[str, str] = field(default_factory=dict)
