"""Live progress of a run: a bar on a terminal, a line per generation elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from nograd.cli.output import console, duration, note
from nograd.run.generation import GenerationRecord

RECENT = 5
OnGeneration = Callable[[GenerationRecord], None]


@contextmanager
def generation_progress(total: int, shown: bool = True) -> Iterator[OnGeneration]:
    """A function to be told of each finished generation, for as long as the context lasts.

    total: generations that the run is to have."""
    progress = _News(total)
    if not shown:
        yield lambda _record: None
    elif console(stderr=True).is_terminal:
        with _bar() as bar:
            task = bar.add_task("generation", total=total, news="working on the first one")

            def advance(record: GenerationRecord) -> None:
                bar.update(task, completed=record.generation + 1, news=progress.after(record))

            yield advance
    else:
        yield lambda record: note(f"generation {record.generation + 1}/{total}: {progress.after(record)}")


def loading_note(model: str) -> None:
    """Say what takes time before the first generation."""
    first = ""
    if _first_start():
        first = (
            " (the first start on this machine also converts it and compiles kernels: about half a minute)"
        )
    note(f"loading {model}{first}")


def _first_start() -> bool:
    """Whether the compiled kernels or every converted model are missing."""
    import nograd
    from nograd.assets import cache_dir

    kernels = Path(nograd.__file__).parent / "llm" / "__pycache__"
    return not any(kernels.glob("kernels.*.nbi")) or not (cache_dir() / "models").is_dir()


class _News:
    """What is said after a generation: success, and the time left at the speed of the latest ones."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.seconds: deque[float] = deque(maxlen=RECENT)

    def after(self, record: GenerationRecord) -> str:
        self.seconds.append(record.seconds["generation"])
        left = (self.total - record.generation - 1) * sum(self.seconds) / len(self.seconds)
        rest = f"about {duration(left)} left" if left else "done"
        return f"success {record.success:.2f}, {self.seconds[-1]:.1f} s, {rest}"


def _bar() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.fields[news]}"),
        TimeElapsedColumn(),
        console=console(stderr=True),
    )
