"""`nograd tasks`: the task families, or the tasks of one."""

from __future__ import annotations

from typing import Annotated

import typer


def tasks(
    family: Annotated[str | None, typer.Argument(help="List the tasks of this family.")] = None,
) -> None:
    """List the task families, or the tasks of one.

    \b
    Examples:
      nograd tasks
      nograd tasks in_house
      nograd run --tasks in_house
    """
    from nograd.cli.output import print_table
    from nograd.tasks import registry

    if family is None:
        infos = [entry.info for entry in registry.FAMILIES.values()]
        rows = [(info.name, str(info.size), info.description) for info in infos]
        print_table(("family", "tasks", "description"), rows)
    else:
        found = registry.family(family)
        print_table(
            ("task", "question", "tool", "answer"),
            [(task.id, task.question, task.tool, task.answer) for task in found.tasks],
        )
