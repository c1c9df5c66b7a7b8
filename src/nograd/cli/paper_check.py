"""`nograd paper-check`: the paper's published figures beside their recomputation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from nograd.stats.paper import PaperRow

CONTRADICTIONS = (
    "share removed that |Δ| < 0.015 stands for",
    "largest in-house cost of misrouting",
    "mean step per moved module of uniform",
    "mean step per moved module of random",
)
"""Rows in which two statements of the paper contradict each other; no recomputation can settle them."""

ARMS = {
    "hard": "hard",
    "hard~0.25": "hard_noisy:q=0.25",
    "hard~0.5": "hard_noisy:q=0.5",
    "sparse": "sparse",
    "hard~0.75": "hard_noisy:q=0.75",
    "random": "random",
}
"""Table 5's schemes -> our arms."""

DRAWS = 2000


def paper_check(
    every: Annotated[bool, typer.Option("--all", help="List the rows that agree, too.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print all rows as a last line of strict JSON.")
    ] = False,
) -> None:
    """Compare the paper's figures with their recomputation.

    Exit status 1 if a recomputed statistic is not the published one. Published statements that contradict each
    other are listed and do not fail: there is nothing to recompute. So are figures that cannot be recomputed
    from what was published, and why. The starvation of the schemes is simulated with the allocator itself.

    \b
    Examples:
      nograd paper-check
      nograd paper-check --all
      nograd paper-check --json
    """
    from dataclasses import asdict

    from nograd.cli.output import print_json
    from nograd.stats.paper import not_recomputable, starvation_rows
    from nograd.stats.paper import paper_check as published_rows

    rows = [*published_rows(), *starvation_rows(simulated_starvation(), draws=DRAWS)]
    missing = not_recomputable()
    failed = [row for row in rows if row.agrees is False and row.what not in CONTRADICTIONS]
    contradicting = [row for row in rows if row.agrees is False and row.what in CONTRADICTIONS]
    if every:
        _print_rows("agree", [row for row in rows if row.agrees])
        _print_rows(
            "implied; the paper prints nothing to compare with", [r for r in rows if r.agrees is None]
        )
    _print_rows("published statements that contradict each other", contradicting)
    _print_missing([(item.what, item.source, item.reason) for item in missing])
    _print_rows("recomputed statistics that differ from the published ones", failed)
    _print_verdict(rows, contradicting, failed, len(missing))
    if json:
        record: dict[str, Any] = {
            "rows": [asdict(row) for row in rows],
            "contradictions": [row.what for row in contradicting],
            "mismatches": [row.what for row in failed],
            "not_recomputable": [asdict(item) for item in missing],
        }
        print_json(record)
    if failed:
        raise typer.Exit(1)


def simulated_starvation(draws: int = DRAWS) -> dict[str, float]:
    """Share of allocations in which the bottleneck gets no pair, by Table 5's name of the scheme; all credit
    is on the bottleneck."""
    import numpy as np

    from nograd.search.allocation import allocate
    from nograd.search.arms import parse_arm
    from nograd.search.settings import SearchSettings
    from nograd.stats.paper.starvation import MODULES

    credit = np.eye(MODULES)[-1]
    modules = tuple(f"m{number}" for number in range(MODULES))
    rates = {}
    for scheme, arm in ARMS.items():
        settings = SearchSettings(modules, dim=1, seed=1, generations=draws, arm=parse_arm(arm))
        starved = [allocate(settings, credit, generation).pairs[-1] == 0 for generation in range(draws)]
        rates[scheme] = float(np.mean(starved))
    return rates


def _print_rows(title: str, rows: Sequence[PaperRow]) -> None:
    from nograd.cli.output import print_table

    if rows:
        cells = [(r.what, r.source, _cell(r.published), _cell(r.recomputed), r.note) for r in rows]
        print_table(("figure", "where", "published", "recomputed", "note"), cells, title=title)
        print()


def _print_missing(rows: Sequence[tuple[str, str, str]]) -> None:
    from nograd.cli.output import print_table

    print_table(("figure", "where", "why"), rows, title="cannot be recomputed from what was published")
    print()


def _print_verdict(
    rows: Sequence[PaperRow], contradicting: Sequence[PaperRow], failed: Sequence[PaperRow], missing: int
) -> None:
    agreeing = sum(row.agrees is True for row in rows)
    print(
        f"{agreeing} figures agree, {len(failed)} differ, {len(contradicting)} published statements contradict "
        f"others, {missing} groups of figures cannot be recomputed"
    )


def _cell(value: float | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.4g}"
