"""Finished or running runs, read back: one typed record each, or one tidy table for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nograd.errors import RunError
from nograd.run import checkpoint, layout
from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.run.files import whole_lines
from nograd.run.generation import GenerationRecord, read_generations
from nograd.run.resume import check_config, read_environment
from nograd.run.strict_json import loads

COLUMNS: dict[str, str] = {
    "run": "path of the run directory",
    "arm": "canonical name of the arm",
    "seed": "seed of the run",
    "model": "model.spec of the configuration",
    "family": "task family",
    "planned_generations": "generations that the run is to have",
    "generation": "number of the generation, from 0",
    "success": "the center's success, batch mean",
    "reward": "the center's reward, batch mean",
    "fitness": "the center's fitness",
    "dropped": "mirrored pairs dropped for a non-finite fitness",
    "seconds": "wall time of the generation",
}
"""Columns of every table. Beside them: one per metric and per count of the evaluator, under their own names,
and one per module for each of MODULE_COLUMNS."""

MODULE_COLUMNS: dict[str, str] = {
    "allocation": "mirrored pairs",
    "inclusion": "probability of getting a pair",
    "starved": "got no pair",
    "sigma": "perturbation size",
    "credit_before": "credit that routed this generation",
    "credit_after": "credit after this generation",
    "step_raw": "step norm before the trust region",
    "step_applied": "step norm as applied",
    "clip_bound": "whether the trust region bound",
    "gains": "mean fitness gain per pair; NaN where not measured",
}
"""Column `<name>_<module>` each."""


@dataclass(frozen=True, eq=False)
class RunRecord:
    """A run. theta: float32 [generations + 1, modules, dim]; theta[g] is the center that generation g
    evaluated, the last one the result."""

    path: Path
    config: RunConfig
    environment: Mapping[str, Any]
    modules: tuple[str, ...]
    generations: tuple[GenerationRecord, ...]
    theta: NDArray[np.float32]

    @property
    def complete(self) -> bool:
        """Whether all planned generations are there."""
        return len(self.generations) == self.config.search.generations

    def array(self, field: str) -> NDArray[Any]:
        """A field of all generations: "success" [generations], "allocation" [generations, modules] …"""
        return np.array([getattr(record, field) for record in self.generations])

    def trajectories(self, which: str) -> list[dict[str, Any]]:
        """The center's trajectories in the "first" or the "newest" generation; empty before the first is done
        or where the evaluator gives none."""
        path = layout.trajectories(self.path, which)
        return [loads(line) for line in whole_lines(path.read_bytes())] if path.exists() else []


def load_run(path: Path | str) -> RunRecord:
    """Read a run directory, also while the run goes on. Raises RunError if there is no run, or it is damaged
    or its configuration was edited."""
    root = Path(path)
    environment = read_environment(root)
    config = load_config(root / layout.CONFIG)
    check_config(root, config)
    identity = environment["identity"]
    modules = tuple(identity["modules"])
    generations = tuple(read_generations(root))
    theta = np.zeros((len(generations) + 1, len(modules), identity["dim"]), np.float32)
    for record in generations:
        arrays = checkpoint.read(layout.checkpoint(root, record.generation), record.checkpoint)
        theta[record.generation + 1] = arrays["theta"]
    return RunRecord(root, config, environment, modules, generations, theta)


def find_runs(path: Path | str) -> list[Path]:
    """The run directories at or below a path, sorted. Raises RunError if there are none."""
    root = Path(path)
    folders = {file.parent for file in root.rglob(layout.CONFIG)}
    found = sorted(folder for folder in folders if (folder / layout.ENVIRONMENT).exists())
    if not found:
        raise RunError(f"{root} holds no run; check the path")
    return found


def load(paths: Path | str | Sequence[Path | str]) -> pd.DataFrame:
    """Tidy table, one row per run and generation, of all runs at or below the paths; columns: COLUMNS,
    MODULE_COLUMNS, metrics and counts. Values that a run does not have are missing (NaN)."""
    several = [paths] if isinstance(paths, Path | str) else paths
    runs = {run.resolve(): run for path in several for run in find_runs(path)}
    rows = [row for run in runs.values() for row in _rows(load_run(run))]
    return pd.DataFrame(rows, columns=None if rows else list(COLUMNS))


def _rows(run: RunRecord) -> list[dict[str, Any]]:
    constant = {
        "run": str(run.path),
        "arm": run.config.search.arm,
        "seed": run.config.seed,
        "model": run.config.model.spec,
        "family": run.config.tasks.family,
        "planned_generations": run.config.search.generations,
    }
    return [constant | _row(record) for record in run.generations]


def _row(record: GenerationRecord) -> dict[str, Any]:
    own = {
        "generation": record.generation,
        "success": record.success,
        "reward": record.reward,
        "fitness": record.fitness,
        "dropped": len(record.dropped),
        "seconds": record.seconds["generation"],
    }
    by_module = {
        f"{name}_{module}": value
        for name in MODULE_COLUMNS
        for module, value in zip(record.modules, getattr(record, name), strict=True)
    }
    return own | {**record.metrics, **record.counts, **by_module} | own
