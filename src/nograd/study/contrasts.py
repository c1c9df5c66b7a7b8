"""The tables of a study: every arm against its baseline, paired by seed, and the starvation regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nograd.errors import RunError
from nograd.stats import Contrast, Paired, StarvationFit, compare, fit_starvation, holm, pair
from nograd.stats.sample import mean_of, sd_of
from nograd.study.plan import Plan
from nograd.study.results import Results, Values


@dataclass(frozen=True)
class ArmRow:
    """One arm in one metric.

    values: by seed. mean, sd: over these seeds, None where undefined. contrast: with `baseline`, None for a
    baseline. holm_p: its p-value, adjusted for the other contrasts of the table. unfinished: what its other
    planned seeds lack.
    """

    label: str
    metric: str
    values: Values
    mean: float | None
    sd: float | None
    baseline: str | None
    contrast: Contrast | None
    holm_p: float | None
    unfinished: tuple[str, ...]


def arm_rows(results: Results, plan: Plan, metric: str = "auc") -> tuple[ArmRow, ...]:
    """A row for every arm of the plan that the results have, in the plan's order. Raises ConfigError for an
    unknown metric."""
    labels = [label for label in plan.arms if label in results.measured]
    contrasts = {label: _contrast(results, plan, metric, label) for label in labels}
    adjusted = dict(zip(labels, holm([c.p if (c := contrasts[label]) else None for label in labels]), strict=True))
    return tuple(_row(results, plan, metric, label, contrasts[label], adjusted[label]) for label in labels)


def starvation_fit(results: Results, plan: Plan, module: str, labels: Sequence[str] = ()) -> StarvationFit:
    """ΔAUC on the module's measured starvation, over the arms (all that have a baseline, if none are named).

    Leave out arms with compensated steps (catch_up, spread): the regression is not about them (paper §5.14).
    Raises ConfigError for an unknown module, RunError for an arm without results."""
    arms = labels or [name for name in plan.arms if plan.baseline_of(name) and results.measured.get(name)]
    rates = {label: results.values(f"starvation:{module}", label) for label in arms}
    empty = [label for label in arms if not rates[label]]
    if empty:
        raise RunError(f"arm {empty[0]!r} has no finished run yet; resume its sweep or leave the arm out")
    return fit_starvation(
        {label: float(np.mean(list(by_seed.values()))) for label, by_seed in rates.items()},
        {label: _by_seed(_paired(results, plan, label)) for label in arms},
    )


def most_credited(results: Results, label: str) -> str:
    """The module with the most mean credit in an arm: where the failures are. Raises RunError if the arm has
    no finished run."""
    runs = list(results.measured.get(label, {}).values())
    if not runs:
        raise RunError(f"arm {label!r} has no finished run yet; resume its sweep")
    credit = np.mean([run.credit.mean(axis=0) for run in runs], axis=0)
    return runs[0].modules[int(credit.argmax())]


def _contrast(results: Results, plan: Plan, metric: str, label: str) -> Contrast | None:
    baseline = plan.baseline_of(label)
    if baseline is None or baseline not in results.measured:
        return None
    return compare(results.values(metric, label), results.values(metric, baseline))


def _row(
    results: Results, plan: Plan, metric: str, label: str, contrast: Contrast | None, holm_p: float | None
) -> ArmRow:
    values = results.values(metric, label)
    sample = np.array(list(values.values()), np.float64)
    unfinished = tuple(text for (owner, _), text in results.unfinished.items() if owner == label)
    baseline = plan.baseline_of(label)
    return ArmRow(label, metric, values, mean_of(sample), sd_of(sample), baseline, contrast, holm_p, unfinished)


def _paired(results: Results, plan: Plan, label: str) -> Paired:
    baseline = plan.baseline_of(label)
    if baseline is None:
        raise RunError(f"arm {label!r} is the baseline; leave it out of the regression")
    return pair(results.values("auc", label), results.values("auc", baseline))


def _by_seed(paired: Paired) -> Values:
    return dict(zip(paired.seeds, paired.differences, strict=True))
