"""Live progress of a run: a bar on a terminal, a line per generation elsewhere."""

from __future__ import annotations

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

from nograd.cli.output import console, note
from nograd.run.generation import GenerationRecord
from nograd.run.progress import Lines, Pace

OnGeneration = Callable[[GenerationRecord], None]


@contextmanager
def generation_progress(total: int, shown: bool = True) -> Iterator[OnGeneration]:
    """A function to be told of each finished generation, for as long as the context lasts.

    total: generations that the run is to have."""
    pace = Pace(total)
    if not shown:
        yield lambda _record: None
    elif console(stderr=True).is_terminal:
        with _bar() as bar:
            task = bar.add_task("generation", total=total, news="working on the first one")

            def advance(record: GenerationRecord) -> None:
                bar.update(task, completed=record.generation + 1, news=pace.after(record))

            yield advance
    else:
        yield Lines(total)


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


def _bar() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[news]}"),
        TimeElapsedColumn(),
        console=console(stderr=True),
    )
