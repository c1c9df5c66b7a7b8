"""`nograd report`: sweeps as one page with figures and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    sweeps: Annotated[
        list[Path], typer.Argument(metavar="SWEEP...", help="Sweep directories, or folders with several.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the report goes.")] = Path("report"),
) -> None:
    """Write figures, tables and one self-contained page about sweeps.

    The page opens from disk without a network. Beside it: every figure as SVG and PNG, every table as CSV and
    Markdown. Where the sweeps hold the arms of a figure or table of the paper, it is drawn in the paper's
    form with the published numbers beside. Unfinished runs are named, never averaged in.

    \b
    Examples:
      nograd report sweeps/main
      nograd report sweeps/main sweeps/credit-noise sweeps/floor --out report
      nograd report sweeps
    """
    from nograd.cli.output import console, note
    from nograd.report.gather import gather
    from nograd.report.write import write_report

    studies = gather(sweeps)
    note(f"drawing {', '.join(study.file.name for study in studies)}")
    written = write_report(studies, out)
    console().print(
        f"{written.page}\n{written.figures} figures and {written.tables} tables beside it", soft_wrap=True
    )
