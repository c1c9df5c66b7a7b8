"""The paper check: published figures (arXiv 2608.28011) beside their recomputation."""

from __future__ import annotations

from nograd.stats.paper.differences import difference_checks
from nograd.stats.paper.exact_p import exact_p_checks
from nograd.stats.paper.floor import floor_checks
from nograd.stats.paper.held_out import held_out_checks
from nograd.stats.paper.ledger import ledger_checks
from nograd.stats.paper.main_experiment import main_checks
from nograd.stats.paper.not_recomputable import NotRecomputable, not_recomputable
from nograd.stats.paper.rows import PaperRow
from nograd.stats.paper.starvation import starvation_checks, starvation_rows

__all__ = ["NotRecomputable", "PaperRow", "not_recomputable", "paper_check", "starvation_rows"]

PARTS = (
    starvation_checks,
    main_checks,
    floor_checks,
    held_out_checks,
    difference_checks,
    exact_p_checks,
    ledger_checks,
)


def paper_check() -> list[PaperRow]:
    """Every published figure that can be recomputed or bounded, in the order of the parts above."""
    return [row for part in PARTS for row in part()]
