"""The results of sweeps and runs as one tidy table, in memory and in files."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nograd.errors import ConfigError, RunError
from nograd.run import load as runs
from nograd.run.files import disk_errors, write_atomic
from nograd.study.cell_state import inspect_cell
from nograd.study.results import frame
from nograd.study.sweep_directory import Sweep, find_sweeps, open_sweep

COLUMNS: dict[str, str] = {
    "plan": "plan of the sweep; missing for a run outside of one",
    "label": "label of the arm in the plan; missing for a run outside of a sweep",
    "complete": "whether the run has all its generations",
    **runs.COLUMNS,
}
"""Columns of every table of a sweep, and what they hold. Beside them: the evaluator's metrics and counts, and
one per module for each of `run.load.MODULE_COLUMNS`."""


def load(paths: Path | str | Sequence[Path | str]) -> pd.DataFrame:
    """Tidy table, one row per run and generation, of all sweeps and runs at or below the paths.

    Columns: COLUMNS, and those of the evaluator and of the modules (see `run.load`). Half-finished runs are
    in it; filter on `complete`. A damaged run is left out, with a
    warning. Raises RunError if a path holds neither a sweep nor a run."""
    several = [Path(paths)] if isinstance(paths, Path | str) else [Path(path) for path in paths]
    roots = {root.resolve(): root for path in several if path.exists() for root in _sweeps(path)}
    sweeps = [open_sweep(root) for root in roots.values()]
    inside = frame(sweeps)
    _warn_of_damage(sweeps, inside)
    alone = [run for path in several for run in _runs_outside(path, set(roots))]
    tables = [table for table in (inside, _of_runs(alone)) if len(table)]
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(tables, ignore_index=True)


def export(table: pd.DataFrame, out: Path) -> tuple[Path, ...]:
    """Write data.parquet, data.csv and columns.md into a folder. Raises ConfigError if the table is empty or
    pyarrow is missing."""
    if table.empty:
        raise ConfigError("no run there has finished a generation yet; there is nothing to export")
    files = (out / "data.parquet", out / "data.csv", out / "columns.md")
    with disk_errors():
        out.mkdir(parents=True, exist_ok=True)
        try:
            table.to_parquet(files[0], index=False)
        except ImportError as error:
            raise ConfigError('Parquet needs pyarrow; install it with: pip install "nograd[data]"') from error
        table.to_csv(files[1], index=False)
        write_atomic(files[2], _describe(table).encode())
    return files


def _warn_of_damage(sweeps: Sequence[Sweep], table: pd.DataFrame) -> None:
    """Name the runs that are there and could not be read."""
    read = set(table["run"]) if len(table) else set()
    for sweep in sweeps:
        for cell in sweep.cells:
            if sweep.path(cell).exists() and str(sweep.path(cell)) not in read:
                state = inspect_cell(sweep, cell)
                if state.kind == "damaged":
                    warnings.warn(f"left out: {state.text}", stacklevel=3)


def _sweeps(path: Path) -> list[Path]:
    try:
        return find_sweeps(path)
    except RunError:
        return []


def _runs_outside(path: Path, sweeps: set[Path]) -> list[Path]:
    """Runs at or below a path that belong to none of the sweeps. Raises RunError if a path holds nothing."""
    if any(path.resolve() in (root, *root.parents) for root in sweeps):
        return [run for run in _runs(path) if not any(root in run.resolve().parents for root in sweeps)]
    return runs.find_runs(path)


def _runs(path: Path) -> list[Path]:
    try:
        return runs.find_runs(path)
    except RunError:
        return []


def _of_runs(paths: Sequence[Path]) -> pd.DataFrame:
    if not paths:
        return pd.DataFrame()
    table = runs.load(paths)
    done = table.groupby("run")["generation"].transform("count")
    table.insert(0, "complete", done == table["planned_generations"])
    return table


def _describe(table: pd.DataFrame) -> str:
    """A Markdown table of the columns that are there."""
    lines = ["| column | what it holds |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {_meaning(name)} |" for name in table.columns)]) + "\n"


def _meaning(name: str) -> str:
    if name in COLUMNS:
        return COLUMNS[name]
    for prefix, meaning in runs.MODULE_COLUMNS.items():
        if name.startswith(f"{prefix}_"):
            return f"{meaning}, of module {name.removeprefix(f'{prefix}_')}"
    return "reported by the evaluator"
