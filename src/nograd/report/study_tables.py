"""The tables of one plan: contrasts, further metrics, starvation, movement, what is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nograd.report.gather import Study
from nograd.report.starvation import Regression
from nograd.report.table import Cell, Table, number, p_value, rows_of, spread, words
from nograd.search import metrics as summaries
from nograd.study.contrasts import ArmRow, arm_rows
from nograd.study.metrics import METRICS
from nograd.study.results import collect
from nograd.study.seeds import format_seeds

MARKS = {True: ("✓", "yes"), False: ("✗", "no"), None: ("–", None)}
CONTRAST_COLUMNS = (
    "arm",
    "scheme",
    "n",
    "mean",
    "SD",
    "Δ",
    "CI low",
    "CI high",
    "p",
    "Holm p",
    "TOST p",
    "within ±0.02",
    "seeds −/+",
)
FURTHER = (
    "last5_success",
    "final_success",
    "zero_theta_success",
    "tool_accuracy",
    "caller_accuracy",
    "relay",
    "concentration",
    "heldout_auc",
    "heldout_success",
    "heldout_gain",
)
REPLAYED = (
    "zero_theta_success",
    "final_success",
    "final_gain",
    "final_tool_accuracy",
    "final_caller_accuracy",
    "final_relay",
)
"""The same for a replay, whose steps are coefficients and no generations."""
HOW = (
    "Δ: mean difference from the baseline, paired by seed, with its 95% Student t interval. p: two-sided "
    "sign-flip test, exact up to 20 seeds. Holm p: adjusted for the other contrasts of this table. TOST p: "
    "paired-t equivalence within ±0.02; ✓ certified at 0.05, ✗ not certified, – no test. SD: over seeds, "
    "n − 1."
)


def contrast_table(study: Study, metric: str = "auc") -> Table:
    """Every arm against its baseline in a metric."""
    rows = arm_rows(study.results, study.plan, metric)
    title = f"{metric}: {METRICS[metric][0]}"
    return Table(f"{study.slug}-{metric}", title, CONTRAST_COLUMNS, _cells(study, rows), _notes(rows))


def pooled_table(study: Study) -> Table | None:
    """AUC over the seeds of an extension and of what it extends; None without both."""
    if not study.extended:
        return None
    rows = arm_rows(collect([*study.extended, *study.sweeps]), study.plan)
    note = (
        f"Descriptive: plan {study.file.name} was decided after the seeds of {study.plan.extends} were seen."
    )
    name = f"{study.slug}-pooled"
    title = f"auc, pooled with the seeds of {study.plan.extends}"
    return Table(name, title, CONTRAST_COLUMNS, _cells(study, rows), (note, *_notes(rows)))


def further_table(study: Study) -> Table | None:
    """Mean ± SD of further metrics by arm; those that no run has are left out."""
    names = FURTHER if study.plan.replay is None else REPLAYED
    columns = [name for name in names if _has(study, name)]
    if not columns:
        return None
    tables = {name: arm_rows(study.results, study.plan, name) for name in columns}
    rows = [
        [words(row.label), *(spread(tables[name][index].mean, tables[name][index].sd) for name in columns)]
        for index, row in enumerate(tables[columns[0]])
    ]
    note = "; ".join(f"{name}: {METRICS[name][0]}" for name in columns) + "."
    title = "Further metrics, mean ± SD over seeds"
    return Table(f"{study.slug}-metrics", title, ("arm", *columns), rows_of(rows), (note,))


def movement_table(study: Study) -> Table | None:
    """Movement, starvation and share of the pairs per module, means over seeds; None for a replay."""
    rows = []
    for label, seeds in study.results.measured.items():
        for index, module in enumerate(_modules(study)):
            runs = [run for run in seeds.values() if run.allocation.size]
            if runs:
                moved = [summaries.movement(run.step_norms)[index] for run in runs]
                starved = [summaries.starvation(run.allocation)[index] for run in runs]
                share = [run.allocation[:, index].sum() / run.allocation.sum() for run in runs]
                credit = [run.credit[:, index].mean() for run in runs]
                numbers = [number(float(np.mean(values))) for values in (moved, starved, share, credit)]
                rows.append([words(label), words(module), *numbers])
    if not rows:
        return None
    columns = ("arm", "module", "movement", "starvation", "share of pairs", "mean credit")
    notes = ("Movement: Σ‖step‖ over the run. Starvation: share of the generations without a pair.",)
    return Table(f"{study.slug}-movement", "Modules, means over seeds", columns, rows_of(rows), notes)


def regression_table(study: Study, fits: Sequence[Regression]) -> Table | None:
    """The starvation regressions of a study, one row per group of arms; None if there is none."""
    if not fits:
        return None
    rows = [
        [
            words(regression.baseline),
            words(regression.module),
            number(float(len(regression.points)), 0),
            number(regression.fit.line.slope, 4, signed=True),
            number(regression.fit.interval.low, 4, signed=True),
            number(regression.fit.interval.high, 4, signed=True),
            p_value(regression.fit.test.p),
            number(regression.fit.line.intercept, 4, signed=True),
            number(regression.fit.line.r2),
            words(regression.fit.line.reason or ""),
        ]
        for regression in fits
    ]
    columns = (
        "baseline",
        "bottleneck",
        "arms",
        "slope",
        "CI low",
        "CI high",
        "p",
        "intercept",
        "R²",
        "why undefined",
    )
    notes = (
        "ΔAUC on the bottleneck's measured starvation, over arms with uncompensated steps. The bottleneck "
        "is the module with the most mean credit under the baseline. Interval and sign-flip p: of the slopes "
        "within each seed. Descriptive.",
    )
    return Table(f"{study.slug}-starvation", "ΔAUC on starvation", columns, rows_of(rows), notes)


def missing_table(studies: Sequence[Study]) -> Table:
    """Every planned run that is not complete."""
    rows = [
        [words(study.file.name), words(label), number(float(seed), 0), words(text)]
        for study in studies
        for (label, seed), text in study.results.unfinished.items()
    ]
    notes = () if rows else ("Nothing: every planned run is complete.",)
    columns = ("plan", "arm", "seed", "state")
    return Table("missing", "Planned runs that are not complete", columns, rows_of(rows), notes)


def _cells(study: Study, rows: Sequence[ArmRow]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(_contrast_cells(study, row) for row in rows)


def _contrast_cells(study: Study, row: ArmRow) -> tuple[Cell, ...]:
    start = (
        words(row.label),
        words(study.plan.arms[row.label].arm),
        number(float(len(row.values)), 0),
        number(row.mean, 4),
        number(row.sd, 4),
    )
    contrast = row.contrast
    if contrast is None:
        return (*start, *(words("") for _ in range(8)))
    mark, meaning = MARKS[contrast.equivalence.certified()]
    return (
        *start,
        number(contrast.estimate, 4, signed=True),
        number(contrast.interval.low, 4, signed=True),
        number(contrast.interval.high, 4, signed=True),
        p_value(contrast.p),
        p_value(row.holm_p),
        p_value(contrast.equivalence.p),
        Cell(mark, meaning),
        words(f"{contrast.negative}/{contrast.positive}"),
    )


def _notes(rows: Sequence[ArmRow]) -> tuple[str, ...]:
    dropped = tuple(
        f"{row.label}: without seeds {format_seeds(sorted(one.seed for one in row.contrast.dropped))} "
        f"({row.contrast.dropped[0].reason})."
        for row in rows
        if row.contrast is not None and row.contrast.dropped
    )
    baselines = {row.baseline for row in rows if row.baseline}
    unfinished = tuple(
        f"{row.label}: {len(row.unfinished)} planned runs are not complete and not in these numbers."
        for row in rows
        if row.unfinished
    )
    methods = {row.contrast.test.method for row in rows if row.contrast} - {"exact sign-flip"}
    return (
        HOW,
        *(f"Baseline: {baseline}." for baseline in sorted(baselines) if len(baselines) == 1),
        *(f"p by {method}." for method in sorted(methods)),
        *dropped,
        *unfinished,
    )


def _has(study: Study, metric: str) -> bool:
    values = [
        value for label in study.results.labels for value in study.results.values(metric, label).values()
    ]
    return any(math.isfinite(value) for value in values)


def _modules(study: Study) -> tuple[str, ...]:
    runs = [run for seeds in study.results.measured.values() for run in seeds.values()]
    return runs[0].modules if runs else ()
