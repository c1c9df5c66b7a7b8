"""The starvation regression of each group of arms that share a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nograd.report.gather import Study
from nograd.search.arms import parse_arm
from nograd.stats import Contrast, StarvationFit, compare
from nograd.study.contrasts import most_credited, starvation_fit


@dataclass(frozen=True)
class Regression:
    """module: the bottleneck. points: arm → its mean starvation there and its ΔAUC."""

    baseline: str
    module: str
    points: Mapping[str, tuple[float, Contrast]]
    fit: StarvationFit


def regressions(study: Study) -> tuple[Regression, ...]:
    """One per baseline that has two or more arms with finished runs and uncompensated steps beside it."""
    if study.plan.replay is not None:
        return ()
    found = (_regression(study, baseline, labels) for baseline, labels in study.groups.items())
    return tuple(regression for regression in found if regression is not None)


def point(study: Study, label: str, baseline: str, module: str) -> tuple[float, Contrast]:
    """An arm's mean measured starvation of the module, and its AUC against the baseline's."""
    rates = study.results.values(f"starvation:{module}", label)
    contrast = compare(study.results.values("auc", label), study.results.values("auc", baseline))
    return float(np.mean(list(rates.values()))), contrast


def _regression(study: Study, baseline: str, labels: tuple[str, ...]) -> Regression | None:
    measured = study.results.measured
    arms = [
        label for label in labels if label != baseline and measured[label] and not _compensated(study, label)
    ]
    if len(arms) < 2 or not measured.get(baseline):
        return None
    module = most_credited(study.results, baseline)
    points = {label: point(study, label, baseline, module) for label in arms}
    return Regression(baseline, module, points, starvation_fit(study.results, study.plan, module, arms))


def _compensated(study: Study, label: str) -> bool:
    """Whether an arm makes up for missed movement, so that the regression is not about it (paper §5.14)."""
    arm = parse_arm(study.plan.arms[label].arm)
    return arm.catch_up or arm.spread
