"""`nograd export-data`: all generations of runs and sweeps as one table in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export_data(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Sweeps, runs, or folders with several.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the files go.")] = Path("data"),
) -> None:
    """Write one row per run and generation, as Parquet and CSV.

    Half-finished runs are in it, marked in the column 'complete'. The columns are described in columns.md
    beside the table. In Python: nograd.load(path). Parquet needs pyarrow (extra 'data').

    \b
    Examples:
      nograd export-data sweeps/main
      nograd export-data sweeps runs --out data
    """
    from nograd.cli.output import console
    from nograd.report.data import export, load

    table = load(paths)
    files = export(table, out)
    console().print(
        f"{len(table)} rows × {len(table.columns)} columns\n" + "\n".join(map(str, files)), soft_wrap=True
    )
