"""Tables about the record: predictions with their outcome, and what the runs were made with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nograd.report.gather import Study, ledger_rows
from nograd.report.table import Table, number, rows_of, words
from nograd.study.seeds import format_seeds
from nograd.study.sweep_directory import Sweep

STANDINGS = (
    "preregistered: git shows that the prediction precedes every sweep that it speaks of.",
    "descriptive: some of the data were there before it.",
    "unproven: git cannot tell.",
)


def ledger_table(studies: Sequence[Study]) -> Table:
    """Every prediction of the plans: outcome, standing, evidence."""
    rows = [
        [
            words(row.plan),
            words(row.prediction.id),
            words(row.prediction.claim),
            words(row.outcome),
            words(row.standing),
            words("\n".join(row.evidence)),
        ]
        for study in studies
        for row in ledger_rows(study)
    ]
    columns = ("plan", "id", "prediction", "outcome", "standing", "evidence")
    notes = (*STANDINGS, *scaled_notes(studies)) if rows else ("The plans of these sweeps predict nothing.",)
    return Table("ledger", "Predictions and what came of them", columns, rows_of(rows), notes)


def scaled_notes(studies: Sequence[Study]) -> tuple[str, ...]:
    """A sentence for every sweep that is not its plan as it stands, about which the predictions speak."""
    sweeps = [sweep for study in studies if study.plan.predictions for sweep in study.sweeps]
    return tuple(
        f"{sweep.root} was scaled ({changed}); its predictions were written for the plan as it stands."
        for sweep in sweeps
        if (changed := scaled(sweep))
    )


def scaled(sweep: Sweep) -> str:
    """How a sweep differs from its plan, e.g. "seeds = 1-3, model = …"; empty if it does not."""
    seeds = sweep.scaling.seeds or sweep.file.plan.seeds
    values: dict[str, Any] = {} if seeds == sweep.file.plan.seeds else {"seeds": format_seeds(seeds)}
    values |= sweep.scaling.model_dump(exclude_none=True, exclude={"seeds"})
    values["settings"] = {key: value for key, value in values["settings"].items() if key != "execution"}
    return ", ".join(f"{key.removeprefix('settings.')} = {value}" for key, value in _flat(values).items())


def sweeps_table(studies: Sequence[Study]) -> Table:
    """One row per sweep: plan, where, when, seeds, how it was scaled, how much of it is complete."""
    rows = []
    for study in studies:
        for sweep in study.sweeps:
            names = {cell.name for cell in sweep.cells}
            open_ones = sum(f"{label}/seed-{seed:04d}" in names for label, seed in study.results.unfinished)
            rows.append(
                [
                    words(sweep.file.name),
                    words(str(sweep.root)),
                    words(sweep.started.isoformat(timespec="seconds")),
                    words(format_seeds(sweep.scaling.seeds or sweep.file.plan.seeds)),
                    words(scaled(sweep)),
                    number(float(len(names) - open_ones), 0),
                    number(float(len(names)), 0),
                ]
            )
    columns = ("plan", "directory", "started (UTC)", "seeds", "scaled", "complete", "planned")
    return Table("sweeps", "Sweeps", columns, rows_of(rows))


def environment_table(studies: Sequence[Study]) -> Table:
    """What each sweep was started with: versions, machine, commit."""
    sweeps = [sweep for study in studies for sweep in study.sweeps]
    records = [_flat(sweep.record["environment"]) for sweep in sweeps]
    keys = list(dict.fromkeys(key for record in records for key in record))
    rows = [[words(key), *(words(str(record.get(key, ""))) for record in records)] for key in keys]
    columns = ("what", *(sweep.file.name for sweep in sweeps))
    return Table("environment", "What the sweeps were started with", columns, rows_of(rows))


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = value
    return flat
