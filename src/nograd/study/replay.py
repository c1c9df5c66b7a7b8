"""A replay cell: coefficients that another run has trained, evaluated on other tasks without training.

replay.json in the cell's folder holds the configuration's hash, the coefficients' run, and one evaluation per
θ. It is written once, when all are there: evaluating again costs little and gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nograd.errors import RunError
from nograd.run.config import RunConfig, results_hash
from nograd.run.config_source import make_config
from nograd.run.evaluators import Built
from nograd.run.files import disk_errors, write_atomic
from nograd.run.load import RunRecord, load_run
from nograd.run.lock import locked
from nograd.run.strict_json import dumps, loads
from nograd.study.cells import Cell
from nograd.study.metrics import Measured
from nograd.study.plan import Replay

REPLAY = "replay.json"


def trained_run(cell: Cell, source: Path) -> RunRecord:
    """The finished run of the source sweep with the cell's label and seed. Raises RunError if there is none,
    or it is half-finished."""
    run = load_run(source / cell.folder)
    if not run.complete:
        raise RunError(f"{run.path} is half-finished; resume the sweep {source} first")
    return run


def replay_config(cell: Cell, run: RunRecord) -> RunConfig:
    """The run's own model, agent and subspace, on the cell's tasks."""
    own = {"tasks": cell.config.tasks.model_dump(), "execution": cell.config.execution.model_dump()}
    return make_config(run.config.model_dump() | own)


def replay(cell: Cell, plan: Replay, run: RunRecord, built: Built, path: Path, on_step: Callable[[int], None]) -> None:
    """Evaluate θ = 0 and the coefficients after each of the last generations, and write them down. Raises
    RunError if the run has other modules or fewer generations."""
    modules, dim = tuple(built.evaluator.modules), built.evaluator.dim
    if (modules, dim) != (run.modules, run.theta.shape[2]):
        raise RunError(
            f"{run.path} has coefficients [{', '.join(run.modules)}] × {run.theta.shape[2]}, the evaluator "
            f"wants [{', '.join(modules)}] × {dim}; replay with the model and the subspace of the run"
        )
    evaluations = []
    for step, generations in enumerate(_generations(run, plan.last)):
        theta = run.theta[generations][np.newaxis]
        center = built.evaluator.evaluate(0, theta).evaluations[0]
        evaluations.append({"generations": generations, "success": center.success, "metrics": dict(center.metrics)})
        on_step(step)
    record = {
        "config_hash": results_hash(cell.config),
        "facts": dict(built.facts),
        "modules": list(modules),
        "source_config_hash": results_hash(run.config),
        "evaluations": evaluations,
    }
    with disk_errors():
        path.mkdir(parents=True, exist_ok=True)
        with locked(path):
            write_atomic(path / REPLAY, dumps(record) + b"\n")


def read_replay(cell: Cell, path: Path) -> Measured:
    """What a replay measured. Raises RunError if it is damaged or of another configuration."""
    file = path / REPLAY
    try:
        record = loads(file.read_bytes())
        measured = _measured(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{file} cannot be read ({error!r}); delete it and resume the sweep") from error
    if record["config_hash"] != results_hash(cell.config):
        raise RunError(f"{file} was made with other settings; delete it and resume the sweep")
    return measured


def _generations(run: RunRecord, last: int) -> list[int]:
    """Indices into run.theta: θ = 0, then the last ones."""
    done = len(run.generations)
    if last > done:
        raise RunError(f"{run.path} has only {done} generations, not {last}; set replay.last to {done}")
    return [0, *range(done - last + 1, done + 1)]


def _measured(record: dict[str, Any]) -> Measured:
    rows = record["evaluations"]
    names = {name for row in rows for name in row["metrics"]}
    return Measured(
        modules=tuple(record["modules"]),
        success=np.array([row["success"] for row in rows], np.float64),
        evaluator={name: np.array([row["metrics"].get(name, np.nan) for row in rows], np.float64) for name in names},
    )
