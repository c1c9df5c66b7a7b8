"""A sweep is its directory.

plan.toml           the plan, word for word as it was at the start
sweep.json          scaling, cells, environment, git, when it started; written last, it makes this a sweep
ARM/seed-0001/      one run directory per cell
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nograd.errors import ConfigError, RunError
from nograd.run import layout
from nograd.run.config import results_hash
from nograd.run.environment import environment
from nograd.run.files import disk_errors, write_atomic
from nograd.run.strict_json import dumps, loads
from nograd.study import git
from nograd.study.cells import Cell, cells
from nograd.study.plan_file import PlanFile, read_plan
from nograd.study.scaling import Scaling

PLAN = "plan.toml"
SWEEP = "sweep.json"
_OWN = {PLAN, SWEEP, layout.LOCK, layout.OWNER}


@dataclass(frozen=True)
class Sweep:
    """A sweep on disk. source: directory of the sweep that a replay takes its coefficients from.
    record: sweep.json."""

    root: Path
    file: PlanFile
    scaling: Scaling
    source: Path | None
    record: Mapping[str, Any]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, finished or not."""
        return cells(self.file.plan, self.scaling)

    @property
    def started(self) -> datetime:
        """When the sweep was made, before its first run."""
        return datetime.fromisoformat(self.record["started"])

    def path(self, cell: Cell) -> Path:
        """The cell's run directory."""
        return self.root / cell.folder


def create_sweep(root: Path, file: PlanFile, scaling: Scaling | None = None, source: Path | None = None) -> Sweep:
    """A new sweep directory, without any run yet. Raises ConfigError if the plan cannot be used, RunError if
    the directory holds something else."""
    scaling = scaling or Scaling()
    planned = cells(file.plan, scaling)
    _check_source(file, source)
    with disk_errors():
        root.mkdir(parents=True, exist_ok=True)
        if (root / SWEEP).exists():
            raise RunError(f"{root} already holds a sweep; resume it or choose another directory")
        others = sorted(path.name for path in root.iterdir() if path.name not in _OWN)
        if others:
            raise RunError(f"{root} is not empty (it holds {others[0]!r}); choose another directory")
        record = _record(file, scaling, source, planned)
        write_atomic(root / PLAN, file.text.encode())
        write_atomic(root / SWEEP, dumps(record) + b"\n")
    return open_sweep(root)


def open_sweep(root: Path) -> Sweep:
    """The sweep in a directory. Raises RunError if there is none, or its plan or its cells have changed."""
    record = _read_record(root)
    name = record["plan"]["name"]
    file = read_plan(root / PLAN, name)
    if file.sha256 != record["plan"]["sha256"]:
        raise RunError(
            f"{root / PLAN} was edited after the sweep began; put back the plan it began with, or start "
            f"another sweep with the new one"
        )
    scaling = Scaling.model_validate(record["scaling"])
    source = None if record["source"] is None else Path(record["source"])
    now = {cell.name: results_hash(cell.config) for cell in cells(file.plan, scaling)}
    if now != record["cells"]:
        raise RunError(
            f"this version of nograd reads the plan of {root} as other runs than the version that started "
            f"it; use that version ({record['environment']['versions']['nograd']}), or start another sweep"
        )
    return Sweep(root, file, scaling, source, record)


def find_sweeps(path: Path) -> list[Path]:
    """The sweep directories at or below a path, sorted. Raises RunError if there are none."""
    found = sorted(file.parent for file in path.rglob(SWEEP))
    if not found:
        raise RunError(f"{path} holds no sweep; check the path")
    return found


def _record(file: PlanFile, scaling: Scaling, source: Path | None, planned: tuple[Cell, ...]) -> dict[str, Any]:
    surroundings = environment(planned[0].config, {}, {})
    return {
        "plan": {"name": file.name, "path": str(file.path), "sha256": file.sha256},
        "plan_repository_head": git.head(file.path.parent),
        "scaling": scaling.model_dump(),
        "source": None if source is None else str(source.resolve()),
        "cells": {cell.name: results_hash(cell.config) for cell in planned},
        "environment": {key: surroundings[key] for key in ("versions", "machine", "git")},
        "started": datetime.now(UTC).isoformat(),
    }


def _read_record(root: Path) -> dict[str, Any]:
    path = root / SWEEP
    try:
        return loads(path.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{root} holds no sweep; check the path") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}); restore it from a copy") from error


def _check_source(file: PlanFile, source: Path | None) -> None:
    replay = file.plan.replay
    if replay is None:
        if source is not None:
            raise ConfigError(f"plan {file.name!r} is no replay; leave out the source {source}")
        return
    if source is None:
        raise ConfigError(
            f"plan {file.name!r} replays the coefficients of a {replay.source!r} sweep; "
            f"run that plan first and name its directory as the source"
        )
    found = open_sweep(source).file.name
    if found != replay.source:
        raise ConfigError(
            f"plan {file.name!r} replays a {replay.source!r} sweep, but {source} holds a {found!r} sweep; "
            f"name the directory of a {replay.source!r} sweep"
        )
