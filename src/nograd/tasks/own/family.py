"""The family `jsonl`: the tasks of a file, answered with the tools of a module or with nograd's own toolbox."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nograd.errors import TaskError
from nograd.tasks.family import Example, Task, ToolResult, ToolSpec
from nograd.tasks.normalise import same_answer
from nograd.tasks.own.function_tool import OwnTool
from nograd.tasks.own.problems import Problem, problem, raise_all
from nograd.tasks.own.read import read_lines
from nograd.tasks.own.resolve import Accepts, Made, resolve
from nograd.tasks.own.tools_module import CheckFunction, load_tools
from nograd.tasks.toolbox import toolbox
from nograd.tasks.tools import execute

SET_ASIDE = 3
"""How many tasks, at most, are worked examples where no line is marked as one: a quarter of the file's."""


@dataclass(frozen=True)
class JsonlTasks:
    """A TaskFamily made from files. checks: by task id. hashes: sha256 (hex) of each file by its role."""

    name: str
    tasks: tuple[Task, ...]
    examples: tuple[Example, ...]
    tools: Mapping[str, OwnTool]
    checks: Mapping[str, Accepts]
    hashes: Mapping[str, str]

    def tool(self, name: str) -> ToolSpec | None:
        return self.tools[name].spec if name in self.tools else None

    def call(self, task: Task, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        if tool not in task.offered:
            known = ", ".join(task.offered)
            return ToolResult(ok=False, error=f"unknown tool {tool[:20]!r}; there is {known}")
        return self.tools[tool].call(arguments)

    def succeeded(self, task: Task, answer: str) -> bool:
        """By the line's check; a task of no line, such as a free question, by exact match."""
        accepts = self.checks.get(task.id)
        return same_answer(task.answer, answer) if accepts is None else accepts(answer)


def jsonl(path: str | None = None, tools: str | None = None, examples: str | None = None) -> JsonlTasks:
    """The tasks of a file. tools: a Python file whose public functions are the tools (default: nograd's own
    toolbox). examples: another tasks file, whose worked examples are taken if this one marks none.

    Where no line is an example, and no other file gives any, some tasks are set aside as such, with a warning.
    Raises TaskError that lists everything that is wrong."""
    if path is None:
        raise TaskError("the family jsonl needs a file; give --tasks my.jsonl, or tasks.path in the configuration")
    file = Path(path)
    data = _read(file)
    offered, checks, hashes = _tools(tools)
    read = read_lines(file, data)
    resolved = resolve(read.lines, offered, checks)
    raise_all(file, [*read.problems, *resolved.problems])
    made = list(resolved.made.values())
    hashes["tasks_file"] = hashlib.sha256(data).hexdigest()
    worked = tuple(Example(each.task, each.plan) for each in made if each.example)
    asked = [each for each in made if not each.example]
    if not worked and examples is not None:
        other = jsonl(examples, tools)
        worked = other.examples
        raise_all(file, _shown_elsewhere(resolved.made, worked, examples))
        hashes["examples_file"] = other.hashes["tasks_file"]
    elif not worked:
        asked, worked = _set_aside(file, asked)
    if not asked:
        raise TaskError(f"{file} has no tasks; write at least one line that is no example")
    return JsonlTasks(
        name=f"jsonl_{re.sub(r'[^A-Za-z0-9_]', '_', file.stem)}",
        tasks=tuple(each.task for each in asked),
        examples=worked,
        tools=offered,
        checks={each.task.id: each.accepts for each in asked},
        hashes=hashes,
    )


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise TaskError(f"cannot read the tasks file {file}: {error.strerror}; check the path") from error


def _tools(path: str | None) -> tuple[Mapping[str, OwnTool], Mapping[str, CheckFunction], dict[str, str]]:
    """Tools and checks by name, and the hash of the file they come from."""
    if path is None:
        return {name: OwnTool(tool.spec, partial(execute, tool)) for name, tool in toolbox().items()}, {}, {}
    module = load_tools(Path(path))
    return module.tools, module.checks, {"tools_file": module.sha256}


def _shown_elsewhere(made: Mapping[int, Made], worked: Sequence[Example], source: str) -> list[Problem]:
    """Tasks that another file's worked examples show solved."""
    shown = {each.task.question.strip() for each in worked}
    reason = f"is also a worked example of {source}; a task must not be shown solved, drop it here"
    return [
        problem(number, "question", each.task.question, reason)
        for number, each in made.items()
        if each.task.question.strip() in shown
    ]


def _set_aside(file: Path, made: Sequence[Made]) -> tuple[list[Made], tuple[Example, ...]]:
    """The first few tasks as worked examples, and the rest."""
    count = min(SET_ASIDE, len(made) // 4)
    shown = f"its first {count} tasks are shown as such and never scored" if count else "too few tasks to set any aside"
    if made:
        warnings.warn(f'{file} marks no worked examples ("example": true); {shown}', stacklevel=1)
    return list(made[count:]), tuple(Example(each.task, each.plan) for each in made[:count])
