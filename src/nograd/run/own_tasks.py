"""A person's own questions and answers as a task family, and what identifies their own code."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nograd.errors import ConfigError, TaskError
from nograd.tasks.family import Example, Task, ToolResult, ToolSpec

Check = Callable[[str, str], bool]
"""Gold answer and given answer -> whether the given one is right."""


@dataclass(frozen=True)
class OwnTasks:
    """A TaskFamily without tools: an own agent brings what it needs."""

    tasks: tuple[Task, ...]
    check: Check
    name: str = "own"
    examples: tuple[Example, ...] = ()

    def tool(self, name: str) -> ToolSpec | None:
        del name
        return None

    def call(self, task: Task, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        del task, arguments
        return ToolResult(ok=False, error=f"there is no tool {tool[:20]!r}")

    def succeeded(self, task: Task, answer: str) -> bool:
        return self.check(task.answer, answer)


def own_tasks(tasks: Sequence[Task | Mapping[str, Any]], check: Check) -> OwnTasks:
    """The family of these tasks; a mapping has a question and an answer, and may have an id.

    Raises TaskError for no tasks, a task that is neither, or an id that appears twice."""
    if not tasks:
        raise TaskError("there are no tasks to tune on; give at least one with a question and an answer")
    made = tuple(task if isinstance(task, Task) else _task(index, task) for index, task in enumerate(tasks))
    ids = [task.id for task in made]
    twice = next((each for each in ids if ids.count(each) > 1), None)
    if twice is not None:
        raise TaskError(f"two tasks have the id {twice!r}; give each its own")
    return OwnTasks(made, check)


def free_task(question: str) -> Task:
    """A question without a gold answer."""
    return _task(0, {"id": "free", "question": question, "answer": ""})


def source_hash(code: object) -> str:
    """What identifies a function or callable object across processes: nograd's own by name, any other by the
    sha256 (hex) of its source, of which helpers that it calls are no part.

    Raises ConfigError where there is no source."""
    while isinstance(code, partial):
        code = code.func
    named: Any = code if inspect.isroutine(code) or inspect.isclass(code) else type(code)
    if str(named.__module__).partition(".")[0] == "nograd":
        return f"{named.__module__}.{named.__qualname__}"
    try:
        return hashlib.sha256(inspect.getsource(named).encode()).hexdigest()
    except (OSError, TypeError) as error:
        raise ConfigError(
            f"the source of {named!r} cannot be read, so a resumed run could not know whether it changed; "
            f"define it in a file"
        ) from error


def _task(index: int, values: Mapping[str, Any]) -> Task:
    missing = [key for key in ("question", "answer") if not isinstance(values.get(key), str)]
    if missing:
        raise TaskError(f"task {index} has no {' and no '.join(missing)} as text; got {dict(values)!r}")
    unknown = sorted(values.keys() - {"id", "question", "answer"})
    if unknown:
        raise TaskError(f"task {index} has unknown keys {unknown}; it takes id, question and answer")
    name = str(values.get("id", f"own-{index:02d}"))
    return Task(name, values["question"], values["answer"], "", {}, "", ())
