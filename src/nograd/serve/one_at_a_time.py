"""A task family whose tools take turns: tuning never called two at once, so they may not stand it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from nograd.tasks.family import Example, Task, TaskFamily, ToolResult, ToolSpec


class OneAtATime:
    """A `TaskFamily` that several threads may use."""

    def __init__(self, family: TaskFamily) -> None:
        self._family, self._turn = family, threading.Lock()

    @property
    def name(self) -> str:
        return self._family.name

    @property
    def tasks(self) -> Sequence[Task]:
        return self._family.tasks

    @property
    def examples(self) -> Sequence[Example]:
        return self._family.examples

    def tool(self, name: str) -> ToolSpec | None:
        return self._family.tool(name)

    def call(self, task: Task, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        with self._turn:
            return self._family.call(task, tool, arguments)

    def succeeded(self, task: Task, answer: str) -> bool:
        return self._family.succeeded(task, answer)
