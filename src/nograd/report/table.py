"""A table for people and for programs: cells with a text and a value; CSV and Markdown of them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

Value = float | str | None
NONE = "–"


@dataclass(frozen=True)
class Cell:
    """text: as shown. value: as sorted and as written to CSV; None where there is none."""

    text: str
    value: Value

    @property
    def numeric(self) -> bool:
        return isinstance(self.value, float)


@dataclass(frozen=True)
class Table:
    """name: of its files. notes: sentences below it. rows: as many cells each as there are columns."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers, so that it is aligned right."""
        values = [row[column].value for row in self.rows]
        return any(isinstance(v, float) for v in values) and not any(isinstance(v, str) for v in values)


def words(text: str) -> Cell:
    """A cell of text; a dash if it is empty."""
    return Cell(text or NONE, text or None)


def number(value: float | None, digits: int = 3, *, signed: bool = False) -> Cell:
    """A cell with a number; a dash where it is undefined."""
    if value is None or not math.isfinite(value):
        return Cell(NONE, None)
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return Cell(text.replace("-", "−"), float(value))


def p_value(value: float | None) -> Cell:
    """A p-value with as many digits as it deserves."""
    if value is not None and 0 <= value < 0.001:
        return Cell("<0.001", float(value))
    return number(value)


def spread(mean: float | None, sd: float | None, digits: int = 3, *, signed: bool = False) -> Cell:
    """Mean ± SD, sorted by the mean."""
    cell = number(mean, digits, signed=signed)
    around = number(sd, digits)
    if cell.value is None or around.value is None:
        return cell
    return Cell(f"{cell.text} ± {around.text}", cell.value)


def to_csv(table: Table) -> str:
    """The values at full precision; an empty field where there is none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow("" if cell.value is None else _plain(cell.value) for cell in row)
    return out.getvalue()


def to_markdown(table: Table) -> str:
    """The texts, under the title and above the notes."""
    rule = ["---:" if table.numeric(index) else "---" for index in range(len(table.columns))]
    lines = [table.columns, rule, *([cell.text for cell in row] for row in table.rows)]
    body = "\n".join(f"| {' | '.join(_escape(cell) for cell in line)} |" for line in lines)
    return "\n\n".join([f"**{table.title}**", body, *table.notes]) + "\n"


def _plain(value: float | str) -> str:
    return value if isinstance(value, str) else repr(value)


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def rows_of(rows: Sequence[Sequence[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    """Rows as a table holds them."""
    return tuple(tuple(row) for row in rows)
