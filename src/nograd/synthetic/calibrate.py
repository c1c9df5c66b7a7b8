"""How the free constants were found: `python -m nograd.synthetic.calibrate` (some seven minutes).

A full grid over the three constants; the point whose uniform AUC is nearest to the paper's in its worst
regime wins. Only the arm `uniform` is run, under seeds that the pre-study does not use, so that the
pre-study's uniform column is out of sample and its other columns are predictions.

Four numbers do not pin three constants down. What they leave open is printed as well: the range of each
prediction over all points of the grid that meet the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from nograd.synthetic.landscape import Landscape
from nograd.synthetic.regimes import REGIMES, Regime
from nograd.synthetic.simulate import simulate
from nograd.synthetic.table6 import ARMS, UNIFORM_AUC
from nograd.synthetic.verdicts import TOLERANCE

SEEDS = range(101, 111)
WIDTHS = (2.0, 2.5, 3.0, 3.5, 4.0)
JUMPS = (1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)
SLACKS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)


@dataclass(frozen=True)
class Fit:
    """auc: mean AUC of uniform by regime. worst: the largest distance from the paper's."""

    landscape: Landscape
    auc: dict[str, float]

    @property
    def worst(self) -> float:
        return max(abs(auc - UNIFORM_AUC[regime]) for regime, auc in self.auc.items())


def grid() -> Iterable[Landscape]:
    """Every combination of the constants' values."""
    return (Landscape(*constants) for constants in product(WIDTHS, JUMPS, SLACKS))


def calibrate(landscapes: Iterable[Landscape], seeds: Sequence[int] = SEEDS) -> list[Fit]:
    """Fits of all landscapes, the best first (the earlier of equals)."""
    fits = [Fit(landscape, _uniform_column(landscape, seeds)) for landscape in landscapes]
    return sorted(fits, key=lambda fit: fit.worst)


def left_open(fits: Iterable[Fit], arm: str, seeds: Sequence[int] = SEEDS) -> dict[str, tuple[float, float]]:
    """Smallest and largest ΔAUC of an arm over the fits within TOLERANCE, by regime; at least one must be."""
    near = [fit for fit in fits if fit.worst <= TOLERANCE]
    ranges = {}
    for name, regime in REGIMES.items():
        deltas = [_mean_auc(regime, arm, fit.landscape, seeds) - fit.auc[name] for fit in near]
        ranges[name] = (min(deltas), max(deltas))
    return ranges


def _uniform_column(landscape: Landscape, seeds: Sequence[int]) -> dict[str, float]:
    return {name: _mean_auc(regime, "uniform", landscape, seeds) for name, regime in REGIMES.items()}


def _mean_auc(regime: Regime, arm: str, landscape: Landscape, seeds: Sequence[int]) -> float:
    return float(simulate(regime, arm, seeds, landscape=landscape).success.mean())


def main() -> None:
    """Print the ten best points of the grid beside the paper's column, then what the column leaves open."""
    print(f"{'paper':<58}", *(f"{auc:.3f}" for auc in UNIFORM_AUC.values()))
    fits = calibrate(grid())
    for fit in fits[:10]:
        text = f"{fit.landscape}, worst {fit.worst:.3f}"
        print(f"{text:<58}", *(f"{auc:.3f}" for auc in fit.auc.values()), flush=True)
    for arm in ARMS[1:]:
        ranges = (f"[{low:+.3f}, {high:+.3f}]" for low, high in left_open(fits, arm).values())
        print(f"{arm:<8}", *ranges, flush=True)


if __name__ == "__main__":
    main()
