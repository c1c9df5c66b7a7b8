"""`nograd ledger`: predictions and what came of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def ledger(
    sweeps: Annotated[
        list[Path] | None,
        typer.Argument(metavar="SWEEP...", help="Sweep directories, or folders with several."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a last line of strict JSON.")] = False,
) -> None:
    """Score the predictions of sweeps: hit, miss or not scorable.

    Each outcome comes with its evidence, and with whether git shows that the prediction was committed before
    the sweep began. An extension that was decided after data were seen is marked descriptive. Without a
    sweep: the paper's own ledger, as far as it is published.

    \b
    Examples:
      nograd ledger
      nograd ledger sweeps/floor
      nograd ledger sweeps/main sweeps/seed-extension --json
    """
    if sweeps:
        _print_scored(sweeps, json)
    else:
        _print_published(json)


def _print_scored(paths: list[Path], json: bool) -> None:
    from nograd.cli.output import console, print_json
    from nograd.report.gather import gather, ledger_rows
    from nograd.report.record_tables import scaled_notes

    out = console()
    studies = gather(paths)
    rows = [row for study in studies for row in ledger_rows(study)]
    for row in rows:
        out.print(
            f"{row.plan} {row.prediction.id}: {row.outcome} ({row.standing})", style="bold", soft_wrap=True
        )
        out.print(f"  {row.prediction.claim}", soft_wrap=True)
        for sentence in row.evidence:
            out.print(f"  · {sentence}", style="dim", soft_wrap=True)
    for sentence in scaled_notes(studies):
        out.print(sentence, soft_wrap=True)
    if not rows:
        out.print("these sweeps' plans predict nothing")
    if json:
        print_json(
            {
                "rows": [
                    {
                        "plan": row.plan,
                        "prediction": row.prediction.id,
                        "claim": row.prediction.claim,
                        "outcome": row.outcome,
                        "standing": row.standing,
                        "values": [one.value for one in row.criteria],
                        "evidence": list(row.evidence),
                    }
                    for row in rows
                ]
            }
        )


def _print_published(json: bool) -> None:
    from dataclasses import asdict

    from nograd.cli.output import console, print_json
    from nograd.study.paper_ledger import HITS, MISSES, SCORED, published

    rows, out = published(), console()
    for row in rows:
        name = " ".join(part for part in (row.row, row.plan, row.prediction) if part)
        observed = "" if row.observed is None else f", observed {row.observed:g}"
        commit = f", committed in {row.commit} {row.date}".rstrip() if row.commit else ""
        out.print(f"{name}: {row.outcome}{observed}", style="bold", soft_wrap=True)
        out.print(f"  {row.source}{commit}{f'; {row.note}' if row.note else ''}", style="dim", soft_wrap=True)
    out.print(
        f"\nthe paper counts {SCORED} scored predictions: {HITS} hits, {MISSES} misses; two hits are in rows "
        f"that are cut off in the published copy",
        soft_wrap=True,
    )
    if json:
        print_json({"rows": [asdict(row) for row in rows], "scored": SCORED, "hits": HITS, "misses": MISSES})
