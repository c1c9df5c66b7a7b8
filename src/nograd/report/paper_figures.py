"""Figures 1, 2 and 3 in the paper's own form; hollow marks are the paper's published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nograd.report.canvas import BLACKISH, COLORS, INK, MARKERS, PAPER, Figure, Panel, blank
from nograd.report.curves import BLUE
from nograd.report.gather import Study
from nograd.report.paper_arms import CORRUPTION, Found, find, named, starvation_arms, table_5_row
from nograd.report.starvation import point
from nograd.report.study_figures import draw_interval, draw_line, mean_curve
from nograd.stats import fit_line
from nograd.stats.paper import floor
from nograd.stats.paper import starvation as table5
from nograd.study.contrasts import most_credited

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nograd.stats import Contrast

HOLLOW: dict[str, Any] = {"markerfacecolor": PAPER, "color": BLACKISH, "linestyle": "none"}
BFCL_ARMS = (
    ("bfcl-main", "soft", "-0.044"),
    ("bfcl-main", "random", "-0.062"),
    ("bfcl-main", "hard", "-0.118"),
    ("bfcl-floor", "hard+floor", "+0.026"),
)
"""Figure 3: plan, label, published difference (§5.10)."""


def paper_figures(studies: Sequence[Study]) -> tuple[Figure, ...]:
    """Those figures that the sweeps hold arms of."""
    figures = (figure_1(studies), figure_2(studies), figure_3(studies))
    return tuple(figure for figure in figures if figure is not None)


def figure_1(studies: Sequence[Study]) -> Figure | None:
    """(a) learning curves of the main arms; (b) loss against starvation over all schemes at hand."""
    panels = []
    main = named(studies, "main")
    if main is not None:
        panels.append(_curves(main))
    arms = starvation_arms(studies)
    if len(arms) > 1:
        panels.append(_starvation(arms))
    caption = (
        "(a) Mean success of the arms of the main comparison. (b) Mean ΔAUC with its 95% interval against "
        "the measured starvation of the bottleneck; hollow: the paper's Table 5; dashed: our least squares."
    )
    return (
        Figure("Figure 1: success, and loss against starvation", caption, tuple(panels)) if panels else None
    )


def figure_2(studies: Sequence[Study]) -> Figure | None:
    """(a) a corrupted routing signal; (b) the coverage floor."""
    arms = starvation_arms(studies)
    panels = [_corruption(arms)] if len(CORRUPTION.keys() & arms.keys()) > 1 else []
    floored = {label: find(studies, "floor", label) for label in ("hard~0.5", "hard~0.5+floor")}
    held = {label: arm.contrast for label, arm in floored.items() if arm is not None}
    if held:
        panels.append(_floor(held))
    caption = (
        "(a) ΔAUC of hard routing whose signal is replaced by a random one with probability q. (b) The "
        "coverage floor; the band is the preregistered |Δ| < 0.015. Hollow: the paper's numbers."
    )
    return Figure("Figure 2: corrupted credit, and the floor", caption, tuple(panels)) if panels else None


def figure_3(studies: Sequence[Study]) -> Figure | None:
    """The BFCL-derived family: per-seed differences, mean and interval."""
    found = [(find(studies, plan, label), published) for plan, label, published in BFCL_ARMS]
    held = [(arm, float(published)) for arm, published in found if arm is not None]
    if not held:
        return None
    drawing, (axes,) = blank()
    for x, (arm, published) in enumerate(held):
        _seeds_and_mean(axes, x, arm.contrast, published)
    _difference_frame(axes, [arm.label for arm, _ in held])
    caption = "Faint: seeds. Full: mean with its 95% interval. Hollow: the paper's means."
    panel = Panel("paper-figure-3", "ΔAUC of the arms on BFCL-derived tasks", drawing)
    return Figure("Figure 3: BFCL-derived tasks", caption, (panel,))


def _curves(study: Study) -> Panel:
    drawing, (axes,) = blank()
    for index, (label, runs) in enumerate(study.results.measured.items()):
        if runs:
            color, marker = COLORS[index], MARKERS[index]
            axes.plot(
                mean_curve(study, label), color=color, marker=marker, markevery=6, markersize=4, label=label
            )
    axes.set(title="(a) learning curves", xlabel="generation", ylabel="success", ylim=(0, 1.02))
    axes.legend(loc="best")
    return Panel("paper-figure-1a", "Mean success by generation of the main arms", drawing)


def _starvation(arms: dict[str, Found]) -> Panel:
    drawing, (axes,) = blank()
    points: list[tuple[float, float]] = []
    for index, (scheme, arm) in enumerate(arms.items()):
        baseline = arm.study.plan.baseline_of(arm.label) or ""
        rate, contrast = point(arm.study, arm.label, baseline, most_credited(arm.study.results, baseline))
        if contrast.estimate is not None:
            points.append((rate, contrast.estimate))
            draw_interval(axes, rate, contrast, index, scheme)
        row = table_5_row(scheme)
        axes.plot(table5.MEASURED[row].value, table5.DELTA[row].value, MARKERS[index], **HOLLOW)
    rates, losses = [rate for rate, _ in points], [loss for _, loss in points]
    draw_line(axes, fit_line(rates, losses), max(rates, default=0.0))
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set(title="(b) loss against starvation", xlabel="starvation of the bottleneck", ylabel="ΔAUC")
    axes.legend(loc="best")
    return Panel("paper-figure-1b", "ΔAUC against the bottleneck's starvation rate", drawing)


def _corruption(arms: dict[str, Found]) -> Panel:
    drawing, (axes,) = blank()
    for scheme, q in CORRUPTION.items():
        if scheme in arms:
            draw_interval(axes, q, arms[scheme].contrast, 0)
        axes.plot(q, table5.DELTA[table_5_row(scheme)].value, "o", **HOLLOW)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set(title="(a) corrupted credit", xlabel="probability q of a random routing vector", ylabel="ΔAUC")
    return Panel("paper-figure-2a", "ΔAUC by the probability of a random routing vector", drawing)


def _floor(held: dict[str, Contrast]) -> Panel:
    drawing, (axes,) = blank()
    published = {"hard~0.5": floor.UNFLOORED.value, "hard~0.5+floor": floor.FLOORED.value}
    axes.axhspan(-0.015, 0.015, color=BLUE, alpha=0.12, linewidth=0)
    for x, (label, contrast) in enumerate(held.items()):
        _seeds_and_mean(axes, x, contrast, published[label])
    _difference_frame(axes, list(held))
    axes.set_title("(b) the coverage floor")
    return Panel("paper-figure-2b", "ΔAUC without and with the coverage floor", drawing)


def _seeds_and_mean(axes: Axes, x: float, contrast: Contrast, published: float) -> None:
    axes.plot([x - 0.15] * contrast.n, contrast.differences, "o", color=BLUE, alpha=0.5, markersize=4)
    draw_interval(axes, x, contrast, 0)
    axes.plot(x + 0.15, published, "o", **HOLLOW)


def _difference_frame(axes: Axes, labels: list[str]) -> None:
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.5, len(labels) - 0.5)
    axes.set_ylabel("ΔAUC against uniform")
