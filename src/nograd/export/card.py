"""The model card of an export: README.md, with how to use it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from nograd.run import layout
from nograd.run.evaluations import read_evaluations
from nograd.run.load import RunRecord


def render_card(facts: Mapping[str, Any], run: RunRecord) -> str:
    """README.md. facts: the record of the export (export.json)."""
    environment = Environment(
        loader=PackageLoader("nograd.export", "."), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["shell"] = shlex.quote
    rows = success_rows(run, facts["generation"])
    config = run.config
    made = {
        "arm": config.search.arm,
        "seed": config.seed,
        "family": config.tasks.family,
        "generations": config.search.generations,
        "dtype": run.environment["identity"]["facts"]["dtype"],
        "basis": config.subspace.basis,
        "dim": config.subspace.dim,
        "parameterisation": config.subspace.parameterisation,
        "injection": config.subspace.injection,
    }
    return environment.get_template("card.md.j2").render(
        facts,
        run=made,
        title=f"{run.path.resolve().name}: {', '.join(stage['name'] for stage in facts['stages'])}",
        success=rows,
        heldout=len(rows) > 1,
        largest=max(stage["check"]["largest"] if stage["check"] else 0.0 for stage in facts["stages"]),
    )


def success_rows(run: RunRecord, generation: int) -> list[dict[str, Any]]:
    """Success before and after: on the run's own batches, and on every family that `nograd evaluate` was asked for.

    On its own batches: generation 0's center, which is untouched, and the mean of the last five centers (fewer if
    there are not so many) up to this generation's."""
    own = [record.success for record in run.generations[: generation + 1]]
    rows = []
    if own:
        last = own[1:][-5:] or own
        rows.append({
            "on": f"{run.config.tasks.family}, the run's own batches (mean of the last {len(last)})",
            "before": own[0],
            "after": sum(last) / len(last),
        })  # fmt: skip
    for file in sorted(layout.evaluations(run.path, "").parent.glob("*.jsonl")):
        found = read_evaluations(run, file.stem)
        if 0 in found and generation in found:
            rows.append({
                "on": f"{file.stem}, all tasks", "before": found[0].success, "after": found[generation].success,
            })  # fmt: skip
    return rows
