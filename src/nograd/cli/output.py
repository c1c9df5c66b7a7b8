"""How the commands print: results on stdout, progress and notes on stderr, model text never as markup."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

SUMMARY_KEYS = (
    "zero_theta_success",
    "last5_success",
    "auc",
    "requests_asked",
    "requests_computed",
    "tokens",
    "seconds",
    "peak_memory_bytes",
    "run_dir",
)
"""Keys of the JSON line of `nograd run --json`."""


def console(*, stderr: bool = False) -> Console:
    """A console that neither guesses at numbers nor reads markup; as wide as a page where it is no terminal."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 110
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width)


def note(sentence: str) -> None:
    """A line on stderr."""
    console(stderr=True).print(sentence, style="dim", soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """A table on stdout; columns whose cells all look like numbers are aligned right."""
    cells = [list(row) for row in rows]
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2)
    )
    for index, name in enumerate(columns):
        numeric = all(_is_number(row[index]) for row in cells)
        table.add_column(name, justify="right" if numeric else "left", header_style="bold", overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def share(value: float) -> str:
    """A rate as 0.44; a dash where there is none."""
    return "–" if value != value else f"{value:.2f}"


def print_json(values: Mapping[str, Any]) -> None:
    """One line of strict JSON on stdout."""
    from nograd.run.strict_json import dumps

    print(dumps(values).decode("ascii"), flush=True)


def _is_number(cell: str) -> bool:
    return cell.lstrip("+-−").replace(".", "", 1).replace(",", "").isdigit() or cell in ("–", "")
