"""A trajectory for people to read: what each stage wrote and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from nograd.agent.trajectory import Trajectory

LONGEST = 200


def print_steps(console: Console, heading: str, record: Mapping[str, Any], style: str) -> None:
    """Print a trajectory record (see `Trajectory.record`) under a heading."""
    console.print(Text(heading, style=style))
    lines = list(_lines(record["steps"]))
    width = max((len(stage) for stage, _ in lines), default=0)
    for stage, text in lines:
        console.print(Text(f"  {stage:{width}}  {text}"), soft_wrap=True)
    console.print(Text(f"  {'answer':{width}}  {short(record['answer'])}", style="bold"), soft_wrap=True)


def free_record(trajectory: Trajectory) -> dict[str, Any]:
    """The record of a trajectory whose task has no gold answer."""
    return trajectory.record("", False)


def _lines(steps: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for step in steps:
        yield step["stage"], short(step["text"])
        if step["outcome"]:
            yield "", f"→ {short(step['outcome'])}"


def short(text: str) -> str:
    """On one line, control characters made visible, cut where it gets long."""
    line = " ⏎ ".join(text.split("\n")) if text.strip() else "(nothing)"
    line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} …"
