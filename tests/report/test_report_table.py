"""Tables as CSV and Markdown: what is written can be read back."""

from __future__ import annotations

import csv
import io
import math

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nograd.report.table import Cell, Table, number, p_value, spread, to_csv, to_markdown, words

TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
CELLS = st.one_of(TEXTS.map(words), st.floats().map(number), st.none().map(number))


@settings(deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=6))
def test_csv_keeps_every_value(rows: list[tuple[Cell, Cell]]) -> None:
    table = Table("t", "T", ("a", "b"), tuple(rows))
    head, *read = list(csv.reader(io.StringIO(to_csv(table), newline="")))
    assert head == ["a", "b"]
    expected = [cell.value for row in rows for cell in row]
    found = [field for row in read for field in row]
    assert len(found) == len(expected)
    for value, field in zip(expected, found, strict=True):
        assert field == ("" if value is None else value if isinstance(value, str) else repr(value))
        if isinstance(value, float):
            assert float(field) == value


@settings(deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=6))
@example([(words("a|b"), words("two\nlines"))])
def test_markdown_has_one_line_per_row_and_as_many_columns(rows: list[tuple[Cell, Cell]]) -> None:
    lines = to_markdown(Table("t", "T", ("a", "b"), tuple(rows), ("note",))).split("\n")
    body = [line for line in lines if line.startswith("| ")]
    assert len(body) == 2 + len(rows)
    assert all(line.replace("\\|", "").count("|") == 3 for line in body)


def test_numbers_as_people_read_them() -> None:
    assert number(-0.01234, 4, signed=True) == Cell("−0.0123", -0.01234)
    assert number(math.nan) == number(None) == number(math.inf) == Cell("–", None)
    assert p_value(0.0004).text == "<0.001"
    assert p_value(0.03125).text == "0.031"
    assert spread(0.5, None).text == "0.500"
    assert spread(0.5, 0.25, 2) == Cell("0.50 ± 0.25", 0.5)
    assert words("") == Cell("–", None)


def test_a_column_of_numbers_may_have_gaps_but_no_words() -> None:
    table = Table("t", "T", ("a", "b"), ((number(1.0), number(1.0)), (words(""), words("x"))))
    assert table.numeric(0)
    assert not table.numeric(1)
