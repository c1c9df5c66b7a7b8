"""The pre-study as text: Table 6 with the paper's numbers beside it, then what agrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from textwrap import fill, indent
from typing import Any

from nograd.stats import MARGIN
from nograd.synthetic.landscape import CALIBRATED
from nograd.synthetic.prestudy import CONTROL, Row
from nograd.synthetic.verdicts import TOLERANCE, agrees, structure

COLUMNS = f"{'regime':<28} {'arm':<16} {'here':>8} {'paper':>8}  {'agrees':<6} {'p':>7} {'95% interval':>18}"

WIDTH = 110


def text_table(rows: Sequence[Row]) -> str:
    """The whole report: numbers, agreement, structure, and what was calibrated."""
    statements = structure(rows)
    lines = [COLUMNS, *(_line(row) for row in rows), "", _agreement(rows)]
    lines += ["", "What the paper's table shows, here:"] if statements else []
    for statement in statements:
        lines.append(f"  {'holds' if statement.holds else 'FAILS'}: {statement.text}")
        lines.append(indent(fill(statement.evidence, WIDTH - 9), " " * 9))
    return "\n".join([*lines, "", fill(_how_found(), WIDTH)])


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One record per regime, arm and seed, for a data frame: regime, arm, seed, auc, delta."""
    control = {row.regime.name: row.auc for row in rows if row.arm == CONTROL}
    return [
        {
            "regime": row.regime.name,
            "arm": row.arm,
            "seed": seed,
            "auc": auc,
            "delta": auc - control[row.regime.name][seed],
        }
        for row in rows
        for seed, auc in row.auc.items()
    ]


def _line(row: Row) -> str:
    sign = "" if row.arm == CONTROL else "+"
    paper = "" if row.published is None else f"{row.published:{sign}.3f}"
    verdict = {True: "yes", False: "no", None: ""}[agrees(row)]
    here = f"{row.value:{sign}.3f}{'*' if row.significant else ' '}"
    start = f"{row.regime.title:<28} {row.arm:<16} {here:>8} {paper:>8}  {verdict:<6}"
    return f"{start} {_spread(row)}".rstrip()


def _spread(row: Row) -> str:
    if row.contrast is None or row.contrast.p is None or row.contrast.interval.low is None:
        return ""
    low, high = row.contrast.interval.low, row.contrast.interval.high
    interval = f"[{low:+.3f}, {high:+.3f}]"
    return f"{row.contrast.p:>7.4f} {interval:>18}"


def _agreement(rows: Sequence[Row]) -> str:
    predicted = [agrees(row) for row in rows if row.arm != CONTROL and row.published is not None]
    within = f"{sum(map(bool, predicted))} of {len(predicted)} predicted differences"
    return f"{within} lie within ±{MARGIN:g} of the paper's. * sign-flip p < 0.05."


def _how_found() -> str:
    constants = ", ".join(f"{name} {value:g}" for name, value in asdict(CALIBRATED).items())
    return (
        f"Free constants: {constants}; one set for all regimes, calibrated on the uniform column only "
        f"(±{TOLERANCE:g}) under other seeds. The differences are predictions."
    )
