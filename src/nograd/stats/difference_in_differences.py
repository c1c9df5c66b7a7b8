"""Paired difference-in-differences: how much a contrast changes between two conditions."""

from __future__ import annotations

from nograd.stats.contrast import Contrast, summarise
from nograd.stats.equivalence import MARGIN
from nograd.stats.pairing import Term, Values, signed_sum


def difference_in_differences(
    treatment: Values,
    control: Values,
    baseline_treatment: Values,
    baseline_control: Values,
    *,
    margin: float = MARGIN,
    confidence: float = 0.95,
    seed: int = 0,
) -> Contrast:
    """(treatment - control) - (baseline_treatment - baseline_control), over the seeds that all four have.

    The paper's floor rescue (§5.8): floored hard and un-floored hard, each against uniform. Where both share
    one control it cancels within each seed; pass it twice."""
    paired = signed_sum(
        [
            Term("treatment", 1, treatment),
            Term("control", -1, control),
            Term("baseline treatment", -1, baseline_treatment),
            Term("baseline control", 1, baseline_control),
        ]
    )
    return summarise(paired, margin=margin, confidence=confidence, seed=seed)
