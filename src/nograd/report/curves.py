"""The learning curve of one run as a picture: success by generation, and the rate of each stage."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nograd.run.load import RunRecord

WINDOW = 5
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#767676"
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""

STAGE_RATES = {
    "tool_accuracy": ("selector: right tool", ORANGE, "o"),
    "call_ok": ("caller: call ok", GREEN, "s"),
    "relay": ("synthesizer: right answer\nafter a good call", PURPLE, "^"),
}
"""Metric -> label, colour and marker."""
OWN_STYLES = ((ORANGE, "o"), (GREEN, "s"), (PURPLE, "^"), (BLUE, "D"), (GREY, "v"))
"""Colours and markers in turn for the stages of any other agent."""


def draw_learning_curve(run: RunRecord, path: Path, untouched: float | None = None) -> Path:
    """Write the picture (the suffix names the format) and return its path.

    untouched: success of θ = 0 for the reference line; None takes that of generation 0, whose center it is."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2, sharey=True)
    success = run.array("success").astype(np.float64)
    _success(left, success, success[0] if untouched is None else untouched)
    _stages(right, run)
    for axes in (left, right):
        _frame(axes, len(success))
    left.set_ylabel("share of the generation's tasks")
    config = run.config
    figure.suptitle(
        f"{config.model.spec}, {config.tasks.family}, {config.search.arm}, seed {config.seed}",
        x=0.01,
        ha="left",
        fontsize=11,
        color=GREY,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def running_mean(values: NDArray[np.float64], window: int = WINDOW) -> NDArray[np.float64]:
    """Mean of up to `window` values that end at each position, float64 [values]; nan counts as absent."""
    means = np.full(len(values), np.nan)
    for end in range(len(values)):
        recent = values[max(0, end + 1 - window) : end + 1]
        if np.isfinite(recent).any():
            means[end] = np.nanmean(recent)
    return means


def metric_curves(run: RunRecord) -> dict[str, NDArray[np.float64]]:
    """Metric -> value per generation, of the metrics that were ever measured."""
    names = dict.fromkeys(name for record in run.generations for name in record.metrics)
    curves = {n: np.array([record.metrics.get(n, np.nan) for record in run.generations]) for n in names}
    return {name: values for name, values in curves.items() if np.isfinite(values).any()}


def _success(axes: Axes, success: NDArray[np.float64], untouched: float) -> None:
    generations = np.arange(len(success))
    axes.axhline(untouched, color=GREY, linestyle="--", linewidth=1.5)
    axes.annotate(
        f"untouched model {untouched:.2f}",
        (len(success) - 1, untouched),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        color=GREY,
        fontsize=9,
    )
    axes.plot(generations, success, "o", color=BLUE, markersize=4, alpha=0.5, label="one generation's batch")
    axes.plot(
        generations, running_mean(success), color=BLUE, linewidth=2.5, label=f"mean of the last {WINDOW}"
    )
    axes.set_title("success", loc="left", fontsize=12)
    axes.legend(frameon=False, fontsize=9, loc="upper left")


def _stages(axes: Axes, run: RunRecord) -> None:
    curves = metric_curves(run)
    own = [f"{stage}_ok" for stage in run.modules if f"{stage}_ok" in curves]
    styles = {name: (f"{name[:-3]}: check passed", *style) for name, style in zip(own, cycle(OWN_STYLES))}
    for name, (label, color, marker) in {**STAGE_RATES, **styles}.items():
        if name in curves:
            values = curves[name]
            axes.plot(
                np.arange(len(values)),
                running_mean(values),
                color=color,
                linewidth=2,
                marker=marker,
                markersize=4,
                markevery=max(1, len(values) // 8),
                label=label,
            )
    axes.set_title(f"stage by stage, mean of the last {WINDOW}", loc="left", fontsize=12)
    if axes.lines:
        axes.legend(frameon=False, fontsize=9, loc="lower right")


def _frame(axes: Axes, generations: int) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_ylim(0, 1.02)
    axes.set_xlim(-0.5, max(generations - 0.5, 0.5))
    axes.set_xlabel("generation")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
