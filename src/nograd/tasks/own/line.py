"""One line of a tasks file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from nograd.tasks.own.check import Check, Strict, Text, named_check


class TaskLine(Strict):
    """A task with its gold call.

    question: what is asked. tool, arguments: the gold call. answer: the gold final answer; without one, what
    the gold call returns. check: how a final answer is judged; without one, by exact match with the gold answer
    once normalised. id: without one, "line-" and the line's number. offered: names of the tools to choose
    from; without it, all. example: a worked example for the prompts, and no task. plan: what the planner says
    in it; without one, what the tool does.
    """

    question: Text
    tool: str
    arguments: dict[str, Any]
    answer: Text | None = None
    check: Annotated[Check, BeforeValidator(named_check)] | None = None
    id: Text | None = None
    offered: Annotated[list[str], Field(min_length=1)] | None = None
    example: bool = False
    plan: Text | None = None
