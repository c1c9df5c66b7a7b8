"""Which arm of which plan stands for an arm of the paper's tables, and what the paper printed for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nograd.report.gather import Study
from nograd.stats import Contrast, compare
from nograd.stats.paper import starvation as table5

STARVATION_ARMS: Mapping[str, tuple[str, str]] = {
    "hard": ("main", "hard"),
    "hard~0.25": ("credit-noise", "hard~0.25"),
    "hard~0.5": ("credit-noise", "hard~0.5"),
    "sparse": ("sparse", "sparse"),
    "hard~0.75": ("credit-noise", "hard~0.75"),
    "random": ("main", "random"),
}
"""Scheme of Table 5 → plan, label."""

CORRUPTION = {"hard": 0.0, "hard~0.25": 0.25, "hard~0.5": 0.5, "hard~0.75": 0.75, "random": 1.0}
"""Scheme → q of Figure 2(a)."""


@dataclass(frozen=True, eq=False)
class Found:
    """An arm of the paper that the sweeps hold, with its AUC against uniform's."""

    study: Study
    label: str
    contrast: Contrast


def find(studies: Sequence[Study], plan: str, label: str, metric: str = "auc") -> Found | None:
    """The arm, if the sweeps have finished runs of it and of its baseline."""
    for study in studies:
        baseline = study.plan.baseline_of(label) if label in study.plan.arms else None
        measured = study.results.measured
        if study.file.name == plan and baseline and measured.get(label) and measured.get(baseline):
            values = study.results.values
            return Found(study, label, compare(values(metric, label), values(metric, baseline)))
    return None


def starvation_arms(studies: Sequence[Study]) -> dict[str, Found]:
    """Scheme of Table 5 → the arm, for those that the sweeps hold."""
    found = {scheme: find(studies, *place) for scheme, place in STARVATION_ARMS.items()}
    return {scheme: arm for scheme, arm in found.items() if arm is not None}


def table_5_row(scheme: str) -> int:
    """Position of a scheme in the columns of `stats.paper.starvation`."""
    return table5.SCHEMES.index(scheme)


def named(studies: Sequence[Study], plan: str) -> Study | None:
    """The study of a plan, if it has any finished run."""
    for study in studies:
        if study.file.name == plan and any(study.results.measured.values()):
            return study
    return None
