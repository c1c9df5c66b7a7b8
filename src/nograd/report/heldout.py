"""Held-out evaluations as tables and as curves: the paper's Table 3, and the held-out learning curve beside the
on-pool one, which the paper could not draw (§5.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nograd.errors import ConfigError
from nograd.report.curves import BLUE, GREEN, GREY, ORANGE, PURPLE, WINDOW, running_mean
from nograd.run.evaluations import row
from nograd.stats import Contrast, compare, holm

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nograd.run.evaluate import Evaluated
    from nograd.run.load import RunRecord

METRICS = {
    "success": "success",
    "caller_accuracy": "caller accuracy",
    "relay": "relay",
    "tool_accuracy": "tool accuracy",
}
"""Column of `run.evaluations` -> words."""

CONTRASTED = ("success", "caller_accuracy", "relay")
UNTRAINED = "untrained"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True)
class ArmRates:
    """An arm's row of Table 3: means over seeds, and standard deviations (n − 1; None for fewer than two
    seeds), by metric. n: number of seeds. A seed without a relay (no call was accepted) is not in its mean."""

    arm: str
    n: int
    mean: Mapping[str, float]
    sd: Mapping[str, float | None]


@dataclass(frozen=True)
class ArmContrast:
    """Treatment less control in one metric, paired by seed. holm_p: adjusted over the contrasts of the metric."""

    treatment: str
    control: str
    metric: str
    contrast: Contrast
    holm_p: float | None


def check_distinct(runs: Sequence[RunRecord]) -> None:
    """Raise ConfigError if two runs would be the same cell of the table, or differ in model or tuned tasks."""
    cells: dict[tuple[str, int], RunRecord] = {}
    for run in runs:
        cell = (run.config.search.arm, run.config.seed)
        other = cells.setdefault(cell, run)
        if other is not run:
            raise ConfigError(
                f"{other.path} and {run.path} are both {cell[0]} with seed {cell[1]}; evaluate them one by one"
            )
    tuned = [(run.config.model.spec, run.config.tasks.path or run.config.tasks.family) for run in runs]
    kinds = {kind: run.path for kind, run in zip(tuned, runs, strict=True)}
    if len(kinds) > 1:
        listing = " and ".join(f"{path} ({', '.join(kind)})" for kind, path in kinds.items())
        raise ConfigError(f"{listing} differ in model or tuned tasks; evaluate them one by one")


def rates_at(evaluated: Sequence[Evaluated], generations: str) -> pd.DataFrame:
    """One row per run and one of the untrained model ("untrained", seed of the run): the means of each metric
    over the generations that were asked for, or the last one where all were."""
    rows = []
    for each in evaluated:
        config = each.run.config
        trained = [g for g in each.records if g] or [0]
        read = trained[-1:] if generations == "all" else trained
        for arm, of in ((UNTRAINED, [0]), (config.search.arm, read)):
            found = pd.DataFrame([row(each.run, "", each.records[g]) for g in of])
            rows.append({"arm": arm, "seed": config.seed} | found[list(METRICS)].mean().to_dict())
    return pd.DataFrame(rows).drop_duplicates(["arm", "seed"], ignore_index=True)


def arm_rates(table: pd.DataFrame) -> list[ArmRates]:
    """Table 3, the untrained model first. table: of `rates_at`."""
    rows = []
    for arm, group in table.groupby("arm", sort=False):
        values = group[list(METRICS)]
        sd = {name: None if len(group) < 2 else float(values[name].std(ddof=1)) for name in METRICS}
        rows.append(ArmRates(str(arm), len(group), {name: float(values[name].mean()) for name in METRICS}, sd))
    return rows


def arm_contrasts(table: pd.DataFrame) -> list[ArmContrast]:
    """Every arm against the untrained model, and against uniform (or the first arm, if there is no uniform)."""
    arms = [arm for arm in table["arm"].unique() if arm != UNTRAINED]
    baseline = "uniform" if "uniform" in arms else arms[0]
    pairs = [(arm, UNTRAINED) for arm in arms] + [(arm, baseline) for arm in arms if arm != baseline]
    found = []
    for metric in CONTRASTED:
        contrasts = [compare(_by_seed(table, a, metric), _by_seed(table, b, metric)) for a, b in pairs]
        adjusted = holm([contrast.p for contrast in contrasts])
        found += [
            ArmContrast(a, b, metric, contrast, p)
            for (a, b), contrast, p in zip(pairs, contrasts, adjusted, strict=True)
        ]
    return found


def draw_heldout_curves(evaluated: Sequence[Evaluated], family: str, path: Path) -> Path:
    """Write the picture of the runs' curves, means over the seeds of an arm; returns its path.

    Left, success on the batches that the runs were tuned on, running mean; middle, success on the family;
    right, caller accuracy (solid) and relay (dashed) on the family."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained", dpi=150)
    pool, success, stages = figure.subplots(1, 3, sharey=True)
    arms = list(dict.fromkeys(each.run.config.search.arm for each in evaluated))
    for index, arm in enumerate(arms):
        color = COLORS[index % len(COLORS)]
        own = [each for each in evaluated if each.run.config.search.arm == arm]
        label = f"{arm} ({len(own)} seed{'s' if len(own) > 1 else ''})"
        _line(pool, [_own_curve(each.run) for each in own], color, label)
        _line(success, [_curve(each, "success") for each in own], color, label, marker="o")
        _line(stages, [_curve(each, "call_ok") for each in own], color, f"{arm}: caller accuracy", marker="s")
        _line(stages, [_curve(each, "relay") for each in own], color, f"{arm}: relay", marker="^", style="--")
    trained = evaluated[0].run.config.tasks.family
    untrained = evaluated[0].records[0].success
    success.axhline(untrained, color=GREY, linestyle=":", linewidth=1.5, label=f"untrained {untrained:.2f}")
    _frame(pool, f"success on {trained}, batches, mean of {WINDOW}")
    _frame(success, f"success on all of {family}")
    _frame(stages, f"stages on all of {family}")
    pool.set_ylabel("share of the tasks")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def _by_seed(table: pd.DataFrame, arm: str, metric: str) -> dict[int, float]:
    rows = table[table["arm"] == arm]
    return dict(zip(rows["seed"].tolist(), rows[metric].tolist(), strict=True))


def _own_curve(run: RunRecord) -> dict[int, float]:
    """Running mean of the success of the run's own batches."""
    return dict(enumerate(running_mean(run.array("success").astype(np.float64)).tolist()))


def _curve(each: Evaluated, metric: str) -> dict[int, float]:
    return {
        generation: record.success if metric == "success" else record.metrics[metric]
        for generation, record in each.records.items()
    }


def _line(
    axes: Axes, curves: Sequence[Mapping[int, float]], color: str, label: str, *, marker: str = "", style: str = "-"
) -> None:
    """The mean of curves over the generations that all of them have."""
    shared = sorted(set.intersection(*(set(curve) for curve in curves)))
    means = [float(np.mean([curve[generation] for curve in curves])) for generation in shared]
    axes.plot(shared, means, style, color=color, label=label, linewidth=2, marker=marker, markersize=4)


def _frame(axes: Axes, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title, loc="left", fontsize=11)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("generation")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
