"""Draws the pictures of docs/concepts.md: `python docs/pictures/concepts.py [FOLDER]`, by default beside this file.

The same versions give the same bytes, so a test can tell whether the committed pictures are current. The allocations
are computed by `nograd.search`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from nograd.search.allocation import allocate
from nograd.search.arms import parse_arm
from nograd.search.settings import SearchSettings

INK, PAPER = "#1f2933", "#ffffff"
FILLS = {"search": "#dbeafe", "agent": "#dcfce7", "engine": "#ffedd5", "disk": "#ede9fe", "plain": "#f1f5f9"}
MODULES = ("planner", "selector", "caller", "synthesizer")
COLOURS = ("#2563eb", "#059669", "#d97706", "#9333ea")
STYLE = {"font.family": "DejaVu Sans", "mathtext.fontset": "dejavusans", "svg.fonttype": "path"}

Point = tuple[float, float]


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure that is drawn on in inches."""
    figure = Figure(figsize=(width, height), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def write(axes: Axes, x: float, y: float, text: str, size: float = 9, **style: object) -> None:
    """Text around (x, y)."""
    axes.text(x, y, text, **{"size": size, "ha": "center", "va": "center", "color": INK, "linespacing": 1.35} | style)


def box(axes: Axes, corner: Point, size: Point, text: str, fill: str = "plain", font: float = 9) -> None:
    """A rounded box with its lower left corner there, and its text in the middle."""
    shape = "round,pad=0,rounding_size=0.07"
    axes.add_patch(FancyBboxPatch(corner, *size, shape, facecolor=FILLS[fill], edgecolor=INK, linewidth=1))
    write(axes, corner[0] + size[0] / 2, corner[1] + size[1] / 2, text, font)


def arrow(axes: Axes, *points: Point) -> None:
    """A line through the points, with a head at the last."""
    axes.plot(*zip(*points[:-1], strict=True), color=INK, linewidth=1, solid_joinstyle="miter")
    head = {"arrowstyle": "-|>", "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0, "color": INK, "linewidth": 1}
    axes.add_patch(FancyArrowPatch(points[-2], points[-1], **head))


def data_flow() -> Figure:
    """Which part hands what to which."""
    figure, axes = canvas(8.6, 3.5)
    for x, width, text, fill in (
        (0.15, 1.45, "allocation\npairs per module", "search"),
        (2.15, 1.5, "ask\ncandidates θ ± σε", "search"),
        (4.5, 1.6, "rollouts\nmany async agents", "agent"),
        (7.0, 1.45, "tell\nθ′ and credit′", "search"),
    ):
        box(axes, (x, 2.1), (width, 0.75), text, fill)
    for x, width, text, fill in (
        (0.15, 1.75, "run directory\na line per generation", "disk"),
        (4.3, 1.6, "scheduler\ndistinct requests", "agent"),
        (6.9, 1.55, "engine\nfrozen model", "engine"),
    ):
        box(axes, (x, 0.55), (width, 0.75), text, fill)
    for start, end in ((1.6, 2.15), (3.65, 4.5), (6.1, 7.0)):
        arrow(axes, (start, 2.48), (end, 2.48))
    write(axes, 4.07, 2.63, "θ of each", 8.5)
    write(axes, 6.55, 2.74, "fitness,\nblame", 8.5)
    arrow(axes, (4.95, 2.1), (4.95, 1.3))
    arrow(axes, (5.45, 1.3), (5.45, 2.1))
    write(axes, 4.55, 1.7, "prompts", 8.5)
    write(axes, 5.85, 1.7, "answers", 8.5)
    arrow(axes, (5.9, 1.08), (6.9, 1.08))
    arrow(axes, (6.9, 0.78), (5.9, 0.78))
    write(axes, 6.4, 1.22, "one batch", 8.5)
    write(axes, 6.4, 0.52, "tokens,\nlog-probabilities", 8)
    arrow(axes, (7.72, 2.85), (7.72, 3.25), (0.85, 3.25), (0.85, 2.85))
    write(axes, 4.3, 3.25, "the next generation", 8.5, backgroundcolor=PAPER)
    arrow(axes, (0.85, 2.1), (0.85, 1.3))
    write(axes, 0.95, 1.7, "every generation is kept;\na resumed run begins there", 8.5, ha="left")
    return figure


def forward_pass() -> Figure:
    """One matrix product of one pass: the rows are tokens of different requests."""
    figure, axes = canvas(8.6, 3.3)
    rows = (
        ("planner, center", 0, "θ"), ("planner, +σε", 0, "θ + σε"), ("planner, −σε", 0, "θ − σε"),
        ("selector, center", 1, "θ"), ("caller, +σε", 2, "θ + σε"),
    )  # fmt: skip
    for x, text in ((0.85, "whose token"), (2.45, "its activation x"), (6.0, "its own θ"), (7.8, "the output y")):
        write(axes, x, 3.1, text, 9, weight="bold")
    for row, (name, module, theta) in enumerate(rows):
        y, colour = 2.55 - row * 0.42, COLOURS[module]
        write(axes, 0.15, y + 0.13, name, ha="left")
        for x, width, alpha in ((1.85, 1.2, 0.25), (5.5, 1.0, 0.45), (7.2, 1.2, 0.25)):
            axes.add_patch(Rectangle((x, y), width, 0.27, facecolor=colour, alpha=alpha, edgecolor=colour))
        write(axes, 6.0, y + 0.13, theta, 8.5)
    box(axes, (3.45, 2.05), (1.6, 0.7), "frozen weight W\nnever written to", "engine")
    box(axes, (3.45, 0.95), (1.6, 0.7), "U, s, V\nshared by all rows", "engine")
    arrow(axes, (3.05, 2.3), (3.45, 2.4))
    arrow(axes, (3.05, 1.5), (3.45, 1.3))
    arrow(axes, (5.05, 1.3), (5.5, 1.5))
    arrow(axes, (6.5, 1.75), (7.2, 1.75))
    arrow(axes, (5.05, 2.55), (5.25, 2.55), (5.25, 2.92), (6.85, 2.92), (6.85, 2.5), (7.2, 2.5))
    write(axes, 4.3, 0.3, r"$y = Wx + c\,((x V_m) \circ s_m \circ \theta_{\mathrm{row}})\, U_m^{\top}$", 12)
    return figure


def generation() -> Figure:
    """One generation of the uniform arm: center and mirrored pairs on the same tasks, then a step per module."""
    figure, axes = canvas(8.6, 3.4)
    box(axes, (0.15, 1.15), (1.45, 1.0), "batch of tasks\nthe same\nfor all candidates")
    box(axes, (2.4, 2.8), (1.9, 0.4), "center θ", "search")
    box(axes, (5.3, 2.8), (3.15, 0.4), "success; blame of the failures → credit", "search", 8.5)
    arrow(axes, (4.3, 3.0), (5.3, 3.0))
    arrow(axes, (1.6, 1.65), (2.0, 1.65), (2.0, 3.0), (2.4, 3.0))
    for row, (module, colour) in enumerate(zip(MODULES, COLOURS, strict=True)):
        y = 2.15 - row * 0.56
        for x, sign in ((2.4, "+"), (3.39, "−")):
            shape = FancyBboxPatch((x, y), 0.91, 0.4, "round,pad=0,rounding_size=0.06", facecolor=colour, alpha=0.25)
            axes.add_patch(shape)
            write(axes, x + 0.455, y + 0.2, f"θ {sign} σε")
        box(axes, (5.3, y), (1.35, 0.4), "(F⁺ − F⁻)/2σ · ε", font=8.5)
        box(axes, (7.0, y), (1.45, 0.4), f"step of {module}", "search", 7.5)
        arrow(axes, (2.0, y + 0.2), (2.4, y + 0.2))
        arrow(axes, (4.3, y + 0.2), (5.3, y + 0.2))
        arrow(axes, (6.65, y + 0.2), (7.0, y + 0.2))
    axes.plot((2.0, 2.0), (0.67, 1.65), color=INK, linewidth=1)
    write(axes, 4.8, 2.5, "fitness F", 8.5)
    write(axes, 3.35, 0.2, "mirrored pairs: the budget", 8.5)
    write(axes, 7.7, 0.2, "no longer than the clip", 8.5)
    return figure


def allocations() -> Figure:
    """Pairs per module over twelve generations of eight pairs, where the caller has most of the credit."""
    arms = ("uniform", "soft", "hard", "hard_noisy:q=0.5,floor=1", "random", "burst:module=caller")
    credit = np.array([0.05, 0.15, 0.7, 0.1])
    figure = Figure(figsize=(8.6, 4.2), facecolor=PAPER, layout="constrained")
    for axes, arm in zip(figure.subplots(2, 3, sharex=True, sharey=True).flat, arms, strict=True):
        settings = SearchSettings(MODULES, dim=32, seed=1, generations=12, pairs=8, arm=parse_arm(arm))
        pairs = np.array([allocate(settings, credit, generation).pairs for generation in range(12)])
        below = np.zeros(12)
        for module, colour in enumerate(COLOURS):
            axes.bar(range(12), pairs[:, module], bottom=below, color=colour, width=0.85, label=MODULES[module])
            below += pairs[:, module]
        axes.set_title(arm, fontsize=10, color=INK)
        axes.set(xticks=(0, 5, 11), yticks=(0, 4, 8))
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("generation", fontsize=9)
    figure.supylabel("pairs", fontsize=9)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def run_directory() -> Figure:
    """What is written when."""
    figure, axes = canvas(8.6, 3.0)
    columns = (
        (0.15, "before the first generation", "config.toml\nthe settings, as resolved", "environment.json\n"
         "versions, machine, hashes"),
        (3.05, "in every generation", "checkpoints/00007.safetensors\nθ, credit: the whole search",
         "generations.jsonl\none line; it commits the rest"),
        (5.95, "to read", "trajectories/\nthe center's, first and newest", "evaluations/, preflight.json\n"
         "by other commands"),
    )  # fmt: skip
    for x, title, first, second in columns:
        write(axes, x + 1.25, 2.75, title, 9.5, weight="bold")
        box(axes, (x, 1.75), (2.5, 0.7), first, "disk", 8.5)
        box(axes, (x, 0.8), (2.5, 0.7), second, "disk", 8.5)
    arrow(axes, (2.65, 1.62), (3.05, 1.62))
    arrow(axes, (4.3, 1.75), (4.3, 1.5))
    arrow(axes, (4.3, 0.8), (4.3, 0.5), (2.85, 0.5), (2.85, 2.1), (3.05, 2.1))
    write(axes, 4.3, 0.2, "killed anywhere, it goes on after the last whole line, to the same bytes", 8.5)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "data-flow": data_flow,
    "forward-pass": forward_pass,
    "generation": generation,
    "allocations": allocations,
    "run-directory": run_directory,
}


def draw(folder: Path) -> None:
    """All pictures, as FOLDER/NAME.svg."""
    for name, picture in PICTURES.items():
        with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
            picture().savefig(folder / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
