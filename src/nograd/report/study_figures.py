"""The figures of one plan: learning curves, credit and allocation, movement, the starvation regression."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nograd.report.canvas import BLACKISH, COLORS, INK, MARKERS, Figure, Panel, blank
from nograd.report.curves import WINDOW, running_mean
from nograd.report.gather import Study
from nograd.report.starvation import Regression
from nograd.report.table import number
from nograd.search import metrics as summaries
from nograd.study.metrics import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nograd.stats import Contrast, Line

Curve = NDArray[np.float64]


def learning_curves(study: Study) -> Figure | None:
    """Success by generation: all arms of a group in one panel, then every arm with its seeds."""
    panels = []
    for baseline, labels in study.groups.items():
        full = [label for label in labels if study.results.measured[label]]
        if full:
            panels.append(_means_panel(study, baseline, full))
            panels += [_seeds_panel(study, baseline, label) for label in full]
    bold = f"as the mean of the last {WINDOW} generations" if study.plan.replay is None else "as it is"
    caption = (
        f"Success of the center on each generation's tasks. Bold: mean over seeds, {bold}. Thin: one seed "
        f"each. Dashed: the baseline's bold line."
    )
    return Figure("Learning curves", caption, tuple(panels)) if panels else None


def credit_and_allocation(study: Study) -> Figure | None:
    """Who got the credit and who got the pairs, over time, one panel per arm."""
    panels = []
    for label, seeds in study.results.measured.items():
        runs = [run for run in seeds.values() if run.allocation.size]
        if runs:
            panels.append(_credit_panel(study.slug, label, runs))
    caption = (
        "Means over seeds. Above: the credit that each module had when the pairs were split. Below: each "
        f"module's share of the pairs, as the mean of the last {WINDOW} generations."
    )
    return Figure("Credit and allocation", caption, tuple(panels)) if panels else None


def movement(study: Study) -> Figure | None:
    """How far each arm moved each module; one panel per group."""
    panels = []
    for baseline, labels in study.groups.items():
        arms = {
            label: [r for r in study.results.measured[label].values() if r.step_norms.size]
            for label in labels
        }
        arms = {label: runs for label, runs in arms.items() if runs}
        if arms:
            panels.append(_movement_panel(study.slug, baseline, arms))
    caption = "Σ‖step‖ over the run by module, mean over seeds."
    return Figure("Movement per module", caption, tuple(panels)) if panels else None


def starvation(study: Study, fits: Sequence[Regression]) -> Figure | None:
    """ΔAUC on the bottleneck's starvation, with the fitted line."""
    panels = tuple(_starvation_panel(study.slug, regression) for regression in fits)
    caption = "Each arm's mean ΔAUC with its 95% interval, at the measured starvation rate of the bottleneck."
    return Figure("Loss and starvation", caption, panels) if panels else None


def mean_curve(study: Study, label: str) -> Curve:
    """Mean success over seeds, float64 [steps]; smoothed as `running_mean` does, unless it is a replay's."""
    mean = np.mean([run.success for run in study.results.measured[label].values()], axis=0)
    return running_mean(mean) if study.plan.replay is None else mean


def file_name(*parts: str) -> str:
    """A name for a panel's files and ids; an arm's label is fit for both as it is."""
    return "-".join(parts)


def _means_panel(study: Study, baseline: str, labels: Sequence[str]) -> Panel:
    drawing, (axes,) = blank()
    for index, label in enumerate(labels):
        curve = mean_curve(study, label)
        axes.plot(
            curve,
            color=COLORS[index % len(COLORS)],
            marker=MARKERS[index % len(MARKERS)],
            linewidth=2,
            markersize=4,
            markevery=max(1, len(curve) // 8),
            label=_short(label),
        )
    _curve_frame(axes, study, baseline, f"arms against {baseline}")
    axes.legend(loc="best")
    alt = f"Mean success by generation of {', '.join(labels)}"
    return Panel(file_name(study.slug, "curves", baseline), alt, drawing)


def _seeds_panel(study: Study, baseline: str, label: str) -> Panel:
    drawing, (axes,) = blank()
    color = COLORS[study.groups[baseline].index(label) % len(COLORS)]
    runs = study.results.measured[label]
    for run in runs.values():
        axes.plot(run.success, color=color, linewidth=0.8, alpha=0.35)
    if label != baseline and study.results.measured.get(baseline):
        axes.plot(mean_curve(study, baseline), color=BLACKISH, linestyle="--", linewidth=1.5)
    axes.plot(mean_curve(study, label), color=color, linewidth=2.2)
    seeds = f"{len(runs)} seed{'s' if len(runs) > 1 else ''}"
    _curve_frame(axes, study, baseline, f"{label}, {seeds}")
    alt = f"Success by generation of {label}, one line per seed"
    return Panel(file_name(study.slug, "seeds", label), alt, drawing)


def _lowest(study: Study, baseline: str) -> float:
    """A tenth at or below every success in a group: where its panels' axes begin."""
    runs = [run for label in study.groups[baseline] for run in study.results.measured[label].values()]
    return math.floor(min(float(run.success.min()) for run in runs) * 10 + 1e-9) / 10


def _curve_frame(axes: Axes, study: Study, baseline: str, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title)
    axes.set_ylim(_lowest(study, baseline) - 0.02, 1.02)
    replayed = "evaluated coefficients, 0: untouched model"
    axes.set_xlabel("generation" if study.plan.replay is None else replayed)
    axes.set_ylabel("success")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _credit_panel(plan: str, label: str, runs: Sequence[Measured]) -> Panel:
    drawing, (above, below) = blank(2, height=3.8, share_x=True)
    modules = runs[0].modules
    credit = np.mean([run.credit for run in runs], axis=0)
    share = np.mean([run.allocation / run.allocation.sum(axis=1, keepdims=True) for run in runs], axis=0)
    smooth = np.stack([running_mean(share[:, m]) for m in range(len(modules))])
    colors = [COLORS[m % len(COLORS)] for m in range(len(modules))]
    for m, module in enumerate(modules):
        above.plot(credit[:, m], color=colors[m], linewidth=1.8, label=module)
    below.stackplot(np.arange(len(share)), smooth, colors=colors, linewidth=0)
    above.set_title(label)
    above.set_ylabel("credit")
    below.set_ylabel("share of pairs")
    below.set_xlabel("generation")
    above.set_ylim(0, 1.02)
    below.set_ylim(0, 1)
    drawing.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=4, columnspacing=0.9)
    alt = f"Credit and share of the pairs by module over the generations of {label}"
    return Panel(file_name(plan, "credit", label), alt, drawing)


def _movement_panel(plan: str, baseline: str, arms: Mapping[str, Sequence[Measured]]) -> Panel:
    drawing, (axes,) = blank(height=max(2.4, 1.3 + 0.35 * len(arms)))
    modules = next(iter(arms.values()))[0].modules
    moved = np.array(
        [np.mean([summaries.movement(r.step_norms) for r in runs], axis=0) for runs in arms.values()]
    )
    left = np.zeros(len(arms))
    for m, module in enumerate(modules):
        axes.barh(range(len(arms)), moved[:, m], left=left, color=COLORS[m % len(COLORS)], label=module)
        left += moved[:, m]
    axes.set_yticks(range(len(arms)), [_short(label) for label in arms])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("movement")
    axes.set_title(f"arms against {baseline}")
    drawing.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, columnspacing=0.9)
    return Panel(file_name(plan, "movement", baseline), f"Movement by module of {', '.join(arms)}", drawing)


def _starvation_panel(plan: str, regression: Regression) -> Panel:
    drawing, (axes,) = blank()
    for index, (label, (rate, contrast)) in enumerate(regression.points.items()):
        draw_interval(axes, rate, contrast, index, _short(label))
    draw_line(axes, regression.fit.line, max(rate for rate, _ in regression.points.values()))
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xlabel(f"starvation of {regression.module}")
    axes.set_ylabel(f"ΔAUC against {_short(regression.baseline)}")
    axes.set_title(_line_text(regression))
    axes.legend(loc="best")
    alt = f"Loss against starvation of {regression.module} for {', '.join(regression.points)}"
    return Panel(file_name(plan, "starvation", regression.baseline), alt, drawing)


def draw_interval(axes: Axes, x: float, contrast: Contrast, look: int, label: str | None = None) -> None:
    """A mean difference with its interval, if it has one, in the look of this number."""
    if contrast.estimate is None:
        return
    low, high = contrast.interval.low, contrast.interval.high
    reach = None if low is None or high is None else [[contrast.estimate - low], [high - contrast.estimate]]
    marker, color = MARKERS[look % len(MARKERS)], COLORS[look % len(COLORS)]
    axes.errorbar([x], [contrast.estimate], yerr=reach, fmt=marker, color=color, capsize=3, label=label)


def draw_line(axes: Axes, line: Line, last: float) -> None:
    """A fitted line, if there is one, from 0 to the last x."""
    if line.slope is not None:
        axes.plot([0.0, last], [line.at(0.0), line.at(last)], color=BLACKISH, linestyle="--")


def _line_text(regression: Regression) -> str:
    line = regression.fit.line
    if line.slope is None:
        return "no line"
    r2 = "" if line.r2 is None else f", R² {line.r2:.2f}"
    return f"slope {number(line.slope, signed=True).text}{r2}"


def _short(label: str) -> str:
    """The part of a label behind its last dot, as in REGIME.ARM, if it is a word."""
    tail = label.rpartition(".")[2]
    return tail if tail.isalpha() else label
