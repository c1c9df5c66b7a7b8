"""Tables 1, 2, 3, 5 and 6 in the paper's own form, with the published numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nograd.report.gather import Study
from nograd.report.paper_arms import find, named, starvation_arms, table_5_row
from nograd.report.starvation import point
from nograd.report.table import Cell, Table, number, p_value, rows_of, spread, words
from nograd.stats.paper import floor, held_out, main_experiment
from nograd.stats.paper import starvation as table5
from nograd.stats.paper.printed import Printed
from nograd.study.contrasts import ArmRow, arm_rows, most_credited
from nograd.synthetic.table6 import ARMS, DELTA_AUC, SIGNIFICANT, UNIFORM_AUC

BESIDE = "Columns marked ‡ are the paper's published numbers; its runs used the models that the plans name."
TABLE_1 = {"uniform": "uniform", "soft": "soft+sigma", "hard": "hard", "random": "random"}
"""Our label → the paper's name in `stats.paper.main_experiment` and `held_out`."""


def paper_tables(studies: Sequence[Study]) -> tuple[Table, ...]:
    """Those tables that the sweeps hold arms of."""
    tables = (table_1(studies), table_2(studies), table_3(studies), table_5(studies), table_6(studies))
    return tuple(table for table in tables if table is not None)


def table_1(studies: Sequence[Study]) -> Table | None:
    """The main comparison."""
    study = named(studies, "main")
    if study is None:
        return None
    concentration = {row.label: row.mean for row in arm_rows(study.results, study.plan, "concentration")}
    rows = [
        [
            words(row.label),
            number(concentration[row.label], 2),
            spread(row.mean, row.sd, 4),
            *_difference(row),
            *_table_1_published(row.label),
        ]
        for row in arm_rows(study.results, study.plan)
    ]
    columns = ("arm", "conc.", "AUC ± SD", "Δ", "p", "TOST p", "conc. ‡", "AUC ± SD ‡", "Δ ‡")
    note = "Conc.: mean share of the pairs that go to the most funded module."
    return Table("paper-table-1", "Table 1: main comparison", columns, rows_of(rows), (note, BESIDE))


def table_2(studies: Sequence[Study]) -> Table | None:
    """The floor test against its predictions."""
    predicted = {"hard~0.5": "≈ −0.034", "hard~0.5+floor": "|Δ| < 0.015"}
    published = {
        "hard~0.5": (floor.UNFLOORED, floor.UNFLOORED_SD),
        "hard~0.5+floor": (floor.FLOORED, floor.FLOORED_SD),
    }
    rows = []
    for label in predicted:
        arm = find(studies, "floor", label)
        if arm is not None:
            contrast = arm.contrast
            mean, sd = published[label]
            rows.append(
                [
                    words(label),
                    words(predicted[label]),
                    spread(contrast.estimate, contrast.sd, 4, signed=True),
                    words(f"{contrast.negative}/{contrast.n}"),
                    p_value(contrast.equivalence.p),
                    spread(mean.value, sd.value, 4, signed=True),
                ]
            )
    columns = ("arm", "predicted", "Δ ± SD", "negative seeds", "TOST p", "Δ ± SD ‡")
    return (
        Table("paper-table-2", "Table 2: the coverage floor", columns, rows_of(rows), (BESIDE,))
        if rows
        else None
    )


def table_3(studies: Sequence[Study]) -> Table | None:
    """The held-out evaluation."""
    study = named(studies, "held-out")
    if study is None:
        return None
    metrics = ("final_success", "final_caller_accuracy", "final_relay")
    by_metric = {metric: arm_rows(study.results, study.plan, metric) for metric in metrics}
    rows = [[words("untrained (θ = 0)"), *_untrained(study), *_table_3_published("untrained")]]
    for index, row in enumerate(by_metric["final_success"]):
        ours = [spread(by_metric[metric][index].mean, by_metric[metric][index].sd) for metric in metrics]
        rows.append([words(row.label), *ours, *_table_3_published(TABLE_1.get(row.label, ""))])
    columns = ("arm", "success", "caller accuracy", "relay", "success ‡", "caller accuracy ‡", "relay ‡")
    return Table("paper-table-3", "Table 3: held-out tasks", columns, rows_of(rows), (BESIDE,))


def table_5(studies: Sequence[Study]) -> Table | None:
    """The points of the starvation regression."""
    rows = []
    for scheme, arm in starvation_arms(studies).items():
        baseline = arm.study.plan.baseline_of(arm.label) or ""
        module = most_credited(arm.study.results, baseline)
        rate, contrast = point(arm.study, arm.label, baseline, module)
        index = table_5_row(scheme)
        rows.append(
            [
                words(scheme),
                number(table5.CLOSED_FORM[index]),
                number(rate),
                number(contrast.estimate, 4, signed=True),
                number(contrast.interval.low, 3, signed=True),
                number(contrast.interval.high, 3, signed=True),
                p_value(contrast.p),
                *(_printed(column[index]) for column in (table5.MEASURED, table5.DELTA, table5.P)),
            ]
        )
    columns = (
        "scheme",
        "nominal",
        "measured",
        "ΔAUC",
        "CI low",
        "CI high",
        "p",
        "measured ‡",
        "ΔAUC ‡",
        "p ‡",
    )
    note = "Starvation of the module with the most mean credit under uniform."
    return (
        Table("paper-table-5", "Table 5: starvation", columns, rows_of(rows), (note, BESIDE))
        if rows
        else None
    )


def table_6(studies: Sequence[Study]) -> Table | None:
    """The pre-study."""
    study = named(studies, "prestudy")
    if study is None:
        return None
    by_label = {row.label: row for row in arm_rows(study.results, study.plan)}
    rows = []
    for regime in UNIFORM_AUC:
        cells = [_table_6_cell(by_label.get(f"{regime}.{arm}")) for arm in ARMS]
        published = [_table_6_published(regime, arm) for arm in ARMS]
        rows.append([words(regime), *cells, *published])
    columns = ("regime", "uniform AUC", *ARMS[1:], "uniform AUC ‡", *(f"{arm} ‡" for arm in ARMS[1:]))
    note = "ΔAUC against uniform; * paired sign-flip p < 0.05."
    return Table("paper-table-6", "Table 6: synthetic pre-study", columns, rows_of(rows), (note, BESIDE))


def _difference(row: ArmRow) -> list[Cell]:
    if row.contrast is None:
        return [words("")] * 3
    contrast = row.contrast
    return [number(contrast.estimate, 4, signed=True), p_value(contrast.p), p_value(contrast.equivalence.p)]


def _table_1_published(label: str) -> list[Cell]:
    name = TABLE_1.get(label)
    if name is None:
        return [words("")] * 3
    index = main_experiment.ARMS.index(name)
    auc, sd = main_experiment.AUC[index].value, main_experiment.AUC_SD[index].value
    difference = main_experiment.DIFFERENCE.get(name)
    return [
        _printed(main_experiment.CONCENTRATION[index]),
        spread(auc, sd, 4),
        words("") if difference is None else _printed(difference),
    ]


def _table_3_published(name: str) -> list[Cell]:
    columns = (held_out.SUCCESS, held_out.CALLER, held_out.RELAY)
    return [_printed(column[name]) if name in column else words("") for column in columns]


def _untrained(study: Study) -> list[Cell]:
    runs = [run for seeds in study.results.measured.values() for run in seeds.values()]
    curves = [[run.success[0] for run in runs]]
    curves += [
        [run.evaluator[name][0] for run in runs if name in run.evaluator] for name in ("call_ok", "relay")
    ]
    return [number(float(np.mean(values)) if values else None) for values in curves]


def _table_6_cell(row: ArmRow | None) -> Cell:
    if row is None:
        return words("")
    if row.contrast is None:
        return number(row.mean)
    cell = number(row.contrast.estimate, signed=True)
    star = "*" if row.contrast.p is not None and row.contrast.p < 0.05 else ""
    return Cell(cell.text + star, cell.value)


def _table_6_published(regime: str, arm: str) -> Cell:
    if arm == "uniform":
        return number(UNIFORM_AUC[regime])
    cell = number(DELTA_AUC[regime][arm], signed=True)
    return Cell(cell.text + ("*" if (regime, arm) in SIGNIFICANT else ""), cell.value)


def _printed(value: Printed) -> Cell:
    return Cell(value.text.replace("-", "−"), value.value)
