"""`nograd tasks`: the task families, or the tasks of one, or of a file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.tasks.own.family import JsonlTasks


def tasks(
    family: Annotated[
        str | None, typer.Argument(metavar="FAMILY|FILE.jsonl", help="List the tasks of this family or file.")
    ] = None,
    tools: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="The tools of a tasks file (default: nograd's own).")
    ] = None,
) -> None:
    """List the task families, or the tasks of one; check a tasks file of your own.

    A tasks file has one JSON object per line, one per task. Its fields:

    \b
      question   what is asked (required)
      tool       the tool that answers it (required)
      arguments  what the tool is to be called with, a JSON object (required)
      answer     the right final answer (default: what that call returns)
      check      how a final answer is judged (default: it equals the right one, whatever its case, space
                 around it, quotes, final full stop, or way of writing a number); one of
                 {"regex": "..."}     the whole answer matches, in Python's syntax
                 {"number": 12.5, "tolerance": 0.1}    the only number in the answer is that close
                 {"one_of": ["...", "..."]}            the answer equals one of these
                 {"contains": "..."}  the answer has this text, as whole words
                 "my_check"           a function my_check(task, answer) of the tools module says True
      offered    names of the tools to choose from (default: all)
      example    true: a worked example for the prompts, and no task
      plan       what the planner says in a worked example (default: what the tool does)
      id         a name of its own (default: "line-" and the number of the line)

    Where no line is an example, the first three tasks, or a quarter of them if that is less, are set aside as
    worked examples; examples are never scored.

    A tools module is a Python file. Each public function is a tool: its name, the first paragraph of its
    docstring, and its parameters by their type hints, with what lines such as "item: name of the item" in the
    docstring say of them. What it returns is shown to the agent as text, and so is what it raises. A tool
    must give the same output for the same arguments. Helper functions begin with _.

    Every gold call is executed, every right answer put to its own check, and every call made a second time to
    see whether the tool gives the same output; all mistakes are listed with their line.

    \b
    Examples:
      nograd tasks
      nograd tasks in_house
      nograd tasks my.jsonl --tools my_tools.py
      nograd run --tasks my.jsonl --tools my_tools.py
    """
    from nograd.cli.output import print_table
    from nograd.run.task_family import tasks_of
    from nograd.tasks.own.family import JsonlTasks
    from nograd.tasks.registry import FAMILIES

    if family is None and tools is None:
        infos = [entry.info for entry in FAMILIES.values()]
        rows = [(info.name, "–" if info.size is None else str(info.size), info.description) for info in infos]
        print_table(("family", "tasks", "description"), rows)
        return
    found = tasks_of(family, tools)
    if isinstance(found, JsonlTasks):
        _print_tools(found)
    print_table(
        ("task", "question", "tool", "answer"),
        [(task.id, task.question, task.tool, task.answer) for task in found.tasks],
    )
    if isinstance(found, JsonlTasks):
        _check_outputs(found)


def _print_tools(found: JsonlTasks) -> None:
    """The tools as the agent is told of them."""
    from nograd.cli.output import print_table

    rows = [
        (name, text if index == 0 else "", parameter)
        for name, tool in found.tools.items()
        for text in [tool.spec.description]
        for index, parameter in enumerate([f"{key}: {line}" for key, line in tool.spec.parameters.items()] or [""])
    ]
    print_table(("tool", "what it does", "parameters"), rows)
    print()


def _check_outputs(found: JsonlTasks) -> None:
    """Make every gold call once more, and say what was found."""
    from nograd.cli.output import console, note

    solved = [*found.tasks, *(example.task for example in found.examples)]
    again = [(task, found.tools[task.tool].call(task.arguments).output) for task in solved]
    differing = [(task, output) for task, output in again if output != task.tool_output]
    for task, output in differing:
        note(
            f"warning: {task.id}: {task.tool} returned {task.tool_output!r}, then {output!r} for the same arguments; "
            f"make it depend on them alone, or no run can be resumed or compared"
        )
    sizes = f"tasks: {len(found.tasks)}, worked examples: {len(found.examples)}, tools: {len(found.tools)}"
    verdict = "every right answer passes its check" if differing else "every gold call works, the same twice"
    console().print(f"\n{sizes}; {verdict}", soft_wrap=True)
