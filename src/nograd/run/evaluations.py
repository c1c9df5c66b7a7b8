"""Saved coefficients' results on a task family, kept in the run: evaluations/<family>.jsonl.

The first line says what was evaluated; each further one is a generation: the coefficients after so many
generations of the run, 0 being the untouched model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from nograd.errors import RunError
from nograd.run import layout
from nograd.run.config import results_hash
from nograd.run.files import disk_errors, write_atomic
from nograd.run.load import RunRecord, find_runs, load_run
from nograd.run.resume import changes
from nograd.run.strict_json import dumps, loads

HEADER = ("family", "tasks", "fingerprint", "dtype", "config_hash")
COLUMNS = (
    "run", "arm", "seed", "model", "trained_on", "family", "generation", "success", "caller_accuracy", "relay",
    "tool_accuracy",
)  # fmt: skip
"""Columns of the table. caller_accuracy: share of tasks whose call passed its check; relay:
P(success | call ok), NaN if no call passed."""


@dataclass(frozen=True)
class EvaluationRecord:
    """One generation's coefficients on all tasks of the family.

    metrics: means over the tasks, as `Evaluation.metrics`. outcomes: per task its id ("task"), the final
    answer, success, the stages' checks and the attempts. checkpoint: sha256 of the coefficients' file, "" for
    generation 0.
    """

    generation: int
    checkpoint: str
    success: float
    reward: float
    metrics: Mapping[str, float]
    outcomes: tuple[Mapping[str, Any], ...]


def header(run: RunRecord, family: str, tasks: str) -> dict[str, Any]:
    """What a run's results on a family depend on beside the generation. tasks: hash of the family's tasks."""
    facts = run.environment["identity"]["facts"]
    values = (family, tasks, facts["fingerprint"], facts["dtype"], results_hash(run.config))
    return dict(zip(HEADER, values, strict=True))


def checkpoint_of(run: RunRecord, generation: int) -> str:
    """The recorded sha256 of theta[generation]; "" for the untouched model."""
    return run.generations[generation - 1].checkpoint if generation else ""


def read_evaluations(
    run: RunRecord, family: str, expected: Mapping[str, Any] | None = None
) -> dict[int, EvaluationRecord]:
    """Results by generation, empty if there are none.

    Raises RunError for a damaged file, for one that was made from other coefficients than the run's, and, if
    `expected` is given, for another header."""
    path = layout.evaluations(run.path, family)
    if not path.exists():
        return {}
    found, records = _read(path)
    changed = changes(expected if expected is not None else found, found)
    other = [r.generation for r in records if not _belongs(run, r)]
    if changed or other or found["config_hash"] != results_hash(run.config):
        what = ", ".join(changed) or "coefficients"
        raise RunError(f"{path} was made with other {what}; delete it to evaluate again")
    return {record.generation: record for record in records}


def write_evaluations(path: Path, head: Mapping[str, Any], records: Iterable[EvaluationRecord]) -> None:
    """Replace the file in one step, generations in order. The caller holds the folder's lock."""
    lines = [dumps(head), *(dumps(asdict(record)) for record in sorted(records, key=lambda r: r.generation))]
    with disk_errors():
        write_atomic(path, b"\n".join(lines) + b"\n")


def load_evaluations(paths: Path | str | Sequence[Path | str], family: str | None = None) -> pd.DataFrame:
    """Tidy table, one row per run, family and evaluated generation, of all runs at or below the paths; columns:
    COLUMNS. family: only this one. Raises RunError for a path without a run, or a damaged file."""
    several = [paths] if isinstance(paths, Path | str) else paths
    roots = {root.resolve(): root for path in several for root in find_runs(path)}
    rows = [row for root in roots.values() for row in _rows(load_run(root), family)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def row(run: RunRecord, family: str, record: EvaluationRecord) -> dict[str, Any]:
    """One row of the table."""
    metrics = record.metrics
    return {
        "run": str(run.path),
        "arm": run.config.search.arm,
        "seed": run.config.seed,
        "model": run.config.model.spec,
        "trained_on": run.config.tasks.family,
        "family": family,
        "generation": record.generation,
        "success": record.success,
        "caller_accuracy": metrics.get("call_ok", math.nan),
        "relay": metrics.get("relay", math.nan),
        "tool_accuracy": metrics.get("tool_accuracy", math.nan),
    }


def _rows(run: RunRecord, family: str | None) -> Iterable[dict[str, Any]]:
    for path in sorted(layout.evaluations(run.path, "").parent.glob("*.jsonl")):
        if family in (None, path.stem):
            for record in read_evaluations(run, path.stem).values():
                yield row(run, path.stem, record)


def _belongs(run: RunRecord, record: EvaluationRecord) -> bool:
    """Whether the record is of coefficients that the run has."""
    known = record.generation <= len(run.generations)
    return known and record.checkpoint == checkpoint_of(run, record.generation)


def _read(path: Path) -> tuple[dict[str, Any], list[EvaluationRecord]]:
    try:
        first, *lines = path.read_bytes().splitlines()
        head = loads(first)
        records = [EvaluationRecord(**loads(line)) for line in lines]
        if set(head) != set(HEADER) or not all(type(r.generation) is int and r.generation >= 0 for r in records):
            raise ValueError(f"not of this version: {sorted(head)}")
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"{path} cannot be read ({error!r}); delete it to evaluate again") from error
    return head, records
