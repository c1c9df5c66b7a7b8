"""A report on disk: index.html, figures/ as SVG and PNG, tables/ as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nograd.errors import ConfigError
from nograd.report.canvas import Panel, style, to_inline, to_png, to_svg
from nograd.report.gather import Study
from nograd.report.page import render, sections
from nograd.report.table import Table, to_csv, to_markdown
from nograd.run.files import disk_errors, write_atomic

PAGE = "index.html"


@dataclass(frozen=True)
class Written:
    """page: the HTML file. figures, tables: how many are beside it."""

    page: Path
    figures: int
    tables: int


def write_report(studies: Sequence[Study], out: Path) -> Written:
    """Draw and write everything; files of an earlier report are replaced. Raises ConfigError if `out` is a
    sweep's own directory."""
    _check_out(studies, out)
    with style(), disk_errors():
        content = sections(studies)
        panels = [panel for section in content for figure in section.figures for panel in figure.panels]
        tables = [table for section in content for table in section.tables]
        drawn = {panel.name: _write_panel(panel, out / "figures") for panel in panels}
        for table in tables:
            _write_table(table, out / "tables")
        write_atomic(out / PAGE, render(studies, content, drawn).encode())
    return Written(out / PAGE, len(panels), len(tables))


def _write_panel(panel: Panel, folder: Path) -> str:
    """Write the panel's files; its <svg> element for the page."""
    svg = to_svg(panel)
    write_atomic(folder / f"{panel.name}.svg", svg.encode())
    write_atomic(folder / f"{panel.name}.png", to_png(panel))
    return to_inline(svg, panel.name, panel.alt)


def _write_table(table: Table, folder: Path) -> None:
    write_atomic(folder / f"{table.name}.csv", to_csv(table).encode())
    write_atomic(folder / f"{table.name}.md", to_markdown(table).encode())


def _check_out(studies: Sequence[Study], out: Path) -> None:
    for study in studies:
        for sweep in study.sweeps:
            if out.resolve() == sweep.root.resolve():
                raise ConfigError(f"{out} is a sweep's own directory; choose another one for the report")
