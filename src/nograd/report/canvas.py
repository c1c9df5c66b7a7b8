"""How figures look, and how they become files and inline SVG that follows the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nograd.report.curves import BLUE, GREEN, ORANGE, PURPLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

INK, FAINT, PAPER = "#1b1f24", "#dfe3e8", "#fefefd"
"""Text and axes; grid; inside of hollow marks. Used for nothing else, so that the page can replace them."""

SKY, GOLD, BLACKISH = "#56B4E9", "#B8860B", "#5a5f66"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, GOLD, BLACKISH)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

VARIABLES = {
    INK: "--ink",
    FAINT: "--grid",
    PAPER: "--paper",
    BLUE: "--blue",
    ORANGE: "--orange",
    GREEN: "--green",
    PURPLE: "--purple",
    SKY: "--sky",
    GOLD: "--gold",
    BLACKISH: "--grey",
}
"""Colour → the page's CSS variable for it."""

WIDTH, HEIGHT = 4.6, 3.2
"""Inches of a panel: readable at the width of a phone without shrinking."""


@dataclass(frozen=True, eq=False)
class Panel:
    """name: of its files. alt: what it shows, for those who cannot see it."""

    name: str
    alt: str
    drawing: Drawing


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels that belong together, under one title and caption."""

    title: str
    caption: str
    panels: tuple[Panel, ...]


@contextmanager
def style() -> Iterator[None]:
    """matplotlib's settings for everything drawn and saved inside."""
    import matplotlib as mpl

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "nograd",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": FAINT,
        "grid.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 8,
    }
    with mpl.rc_context(settings):
        yield


def blank(rows: int = 1, *, height: float = HEIGHT, share_x: bool = False) -> tuple[Drawing, list[Axes]]:
    """A drawing of one panel with axes below each other."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(WIDTH, height), layout="constrained")
    axes = drawing.subplots(rows, 1, sharex=share_x, squeeze=False)
    return drawing, list(axes[:, 0])


def to_svg(panel: Panel) -> str:
    """The panel as an SVG file: text stays text, and the same input gives the same bytes."""
    return _save(panel, "svg", {"Date": None, "Creator": None}).decode()


def to_png(panel: Panel) -> bytes:
    """The panel as a PNG on white, laid out as it was last drawn."""
    panel.drawing.set_layout_engine("none")
    return _save(panel, "png", {"Software": None}, dpi=130, facecolor="white")


def to_inline(svg: str, name: str, alt: str) -> str:
    """The <svg> element for a page: colours are the page's variables, ids cannot clash with other panels'."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'\bid="', f'id="{name}.', element)
    element = re.sub(r"url\(#", f"url(#{name}.", element)
    element = re.sub(r'href="#', f'href="#{name}.', element)
    for color, variable in VARIABLES.items():
        element = re.sub(color, f"var({variable})", element, flags=re.IGNORECASE)
    element = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", element, count=1)
    element = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", element, count=1)
    label = alt.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return element.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _save(panel: Panel, kind: str, metadata: dict[str, Any], **options: Any) -> bytes:
    options.setdefault("transparent", kind == "svg")
    out = io.BytesIO()
    panel.drawing.savefig(out, format=kind, metadata=metadata, **options)
    return out.getvalue()
