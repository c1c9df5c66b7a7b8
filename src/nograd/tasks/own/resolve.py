"""From the lines of a file to tasks: every gold call executed, every gold answer judged by its own check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from nograd.tasks.family import Task, ToolResult
from nograd.tasks.normalise import same_answer
from nograd.tasks.own.function_tool import OwnTool
from nograd.tasks.own.line import TaskLine
from nograd.tasks.own.problems import Problem, problem, unknown
from nograd.tasks.own.tools_module import CheckFunction

Accepts = Callable[[str], bool]
"""Whether a final answer is right; never raises."""


@dataclass(frozen=True)
class Made:
    """A usable line. plan: what the planner says where it is a worked example."""

    task: Task
    accepts: Accepts
    plan: str
    example: bool


@dataclass
class Resolved:
    """made: by line number. problems: of the lines that are of good form, but no usable tasks."""

    made: dict[int, Made] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def resolve(
    lines: Mapping[int, TaskLine], tools: Mapping[str, OwnTool], checks: Mapping[str, CheckFunction]
) -> Resolved:
    """The task of every line, or what is wrong with it."""
    resolved = Resolved()
    for number, line in lines.items():
        problems = [problem(number, name, value, reason) for name, value, reason in _unknown_names(line, tools, checks)]
        if not problems:
            result = tools[line.tool].call(line.arguments)
            made = _make(number, line, result, tools, checks)
            resolved.made[number] = made
            problems = [problem(number, name, value, reason) for name, value, reason in _objections(line, made, result)]
        resolved.problems += problems
    resolved.problems += _repeated(lines, resolved.made)
    return resolved


_Objection = tuple[str, object, str]
"""Field, value, reason."""


def _unknown_names(
    line: TaskLine, tools: Mapping[str, OwnTool], checks: Mapping[str, CheckFunction]
) -> Iterator[_Objection]:
    if line.tool not in tools:
        yield "tool", line.tool, unknown(line.tool, tools)
    for name in line.offered or ():
        if name not in tools:
            yield "offered", name, unknown(name, tools)
    if line.offered is not None and line.tool not in line.offered:
        yield "offered", line.offered, f"lacks the tool of the gold call; add {line.tool!r}"
    if line.offered is not None and len(set(line.offered)) < len(line.offered):
        yield "offered", line.offered, "names a tool twice; keep one"
    if line.check and line.check.function is not None and line.check.function not in checks:
        reason = f"{unknown(line.check.function, checks)}; a check is a function (task, answer) of the tools module"
        yield "check", line.check.function, reason


def _make(
    number: int,
    line: TaskLine,
    result: ToolResult,
    tools: Mapping[str, OwnTool],
    checks: Mapping[str, CheckFunction],
) -> Made:
    answer = line.answer or result.output.strip()
    task = Task(
        id=line.id or f"line-{number}",
        question=line.question,
        answer=answer,
        tool=line.tool,
        arguments=line.arguments,
        tool_output=result.output,
        offered=tuple(line.offered or tools),
    )
    accepts: Accepts = partial(same_answer, answer)
    if line.check is not None:
        function = line.check.function
        accepts = line.check.accepts if function is None else _by_function(checks[function], task)
    return Made(task, accepts, line.plan or f"{tools[line.tool].spec.description}.", line.example)


def _by_function(function: CheckFunction, task: Task) -> Accepts:
    """An answer that the function cannot digest is a wrong one."""

    def accepts(answer: str) -> bool:
        try:
            return bool(function(task, answer))
        except Exception:
            return False

    return accepts


def _objections(line: TaskLine, made: Made, result: ToolResult) -> Iterator[_Objection]:
    """What the gold call and the gold answer show to be wrong."""
    if not result.ok:
        yield "arguments", line.arguments, f"the gold call fails: {result.error}"
    elif not made.task.answer:
        yield "answer", line.answer, f"{line.tool} returns nothing to answer with; write the right answer here"
    elif not made.accepts(made.task.answer):
        whose = "gold answer" if line.answer else "output of the gold call, which is the gold answer,"
        yield "check", _spelling(line), f"does not pass the {whose} {made.task.answer!r}; correct one of them"
    elif made.accepts(""):
        yield "check", _spelling(line), "also passes an empty answer; make it stricter"


def _spelling(line: TaskLine) -> object:
    assert line.check is not None, "an exact match passes the gold answer and nothing else"
    return line.check.function or line.check.model_dump(exclude_unset=True)


def _repeated(lines: Mapping[int, TaskLine], made: Mapping[int, Made]) -> Iterator[Problem]:
    """Ids that are there twice, and worked examples that are also tasks."""
    first: dict[str, int] = {}
    for number, each in made.items():
        other = first.setdefault(each.task.id, number)
        if other != number:
            yield problem(number, "id", each.task.id, f"line {other} has it, too; give each its own")
    shown = {line.question.strip(): number for number, line in lines.items() if line.example}
    for number, line in lines.items():
        other = shown.get(line.question.strip(), 0)
        if other and not line.example:
            reason = f"is also the worked example of line {other}; a task must not be shown solved, drop one of them"
            yield problem(number, "question", line.question, reason)
