"""Live progress of a whole sweep: a bar on a terminal, a line per finished run elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from nograd.cli.output import console, note
from nograd.run.progress import duration
from nograd.study.progress import OnProgress
from nograd.study.progress import Progress as Standing
from nograd.study.sweep_directory import Sweep


@contextmanager
def sweep_progress(sweep: Sweep) -> Iterator[OnProgress]:
    """A function to be told where the sweep stands, for as long as the context lasts."""
    if not console(stderr=True).is_terminal:
        note(f"{sweep.root}: {len(sweep.cells)} runs of plan {sweep.file.name}")
        yield _say_ends
        return
    with _bar() as bar:
        task = bar.add_task(sweep.file.name, total=None, news="looking at what is there")

        def advance(standing: Standing) -> None:
            done, total = standing.rollouts
            bar.update(task, completed=done, total=total, news=sentence(standing))
            if standing.event is not None and standing.event.text:
                bar.console.print(_event_text(standing), style="yellow", soft_wrap=True)

        yield advance


def sentence(standing: Standing) -> str:
    """Where a sweep stands, e.g. "3 of 24 runs, 1 failed, 12% of the rollouts, about 2 h 5 min left"."""
    done, total = standing.rollouts
    failed = f", {standing.failed} failed" if standing.failed else ""
    share = f", {done / total:.0%} of the rollouts" if total else ""
    left = standing.seconds_left
    time = f", about {duration(left)} left" if left is not None and left >= 1 else ""
    return f"{standing.cells[0]} of {standing.cells[1]} runs{failed}{share}{time}"


def _say_ends(standing: Standing) -> None:
    event = standing.event
    if event is not None and event.kind != "step":
        note(f"{_event_text(standing)}; {sentence(standing)}")


def _event_text(standing: Standing) -> str:
    event = standing.event
    assert event is not None
    words = {"done": "complete", "failed": "failed", "retry": "tried again"}
    why = f" ({event.text})" if event.text else ""
    return f"{event.job} {words.get(event.kind, event.kind)}{why}"


def _bar() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[news]}"),
        TimeElapsedColumn(),
        console=console(stderr=True),
    )
