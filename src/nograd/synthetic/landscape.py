"""Success probability of a module as a smooth function of its own theta, and where its optimum lies.

p(θ) = exp(−‖θ − θ*‖² / 2·width²): 1 at the optimum, the log-probability a quadratic bowl around it. At θ = 0
every module is `slack` off its optimum. A module that becomes the bottleneck has its optimum moved by `jump`
more, in a random direction; nothing moves back when the bottleneck goes on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ConfigError
from nograd.search.streams import stream
from nograd.synthetic.regimes import MODULES, bottleneck_of_visit


@dataclass(frozen=True)
class Landscape:
    """Free constants of the environment, in the unit of theta; the same in all regimes.

    width: distance at which success falls to exp(−1/2). jump: how far an optimum moves when its module
    becomes the bottleneck. slack: distance of every optimum from θ = 0 before that.
    Raises ConfigError for a constant out of range.
    """

    width: float
    jump: float
    slack: float

    def __post_init__(self) -> None:
        if not 0 < self.width < math.inf:
            raise ConfigError(f"width must be a positive distance, got {self.width}")
        for name in ("jump", "slack"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be a distance of 0 or more, got {getattr(self, name)}")


CALIBRATED = Landscape(width=3.5, jump=2.25, slack=1.0)
"""The best of the grid of `python -m nograd.synthetic.calibrate`: at most 0.007 off the paper's uniform AUC
in any regime. At θ = 0 the first bottleneck succeeds with probability 0.78 (if its jump is at right angles to
the slack), any other module with 0.96."""


def optimum(landscape: Landscape, seed: int, visit: int, dim: int) -> NDArray[np.float64]:
    """θ* after so many moves of the bottleneck (0: the first one is in place); float64 [modules, dim]."""
    point = np.stack([landscape.slack * _direction(dim, seed, "slack", m) for m in range(len(MODULES))])
    for move in range(visit + 1):
        point[bottleneck_of_visit(move)] += landscape.jump * _direction(dim, seed, "jump", move)
    return point


def _direction(dim: int, seed: int, what: str, number: int) -> NDArray[np.float64]:
    draw = stream(seed, "synthetic", what, number).standard_normal(dim)
    return np.asarray(draw / np.sqrt((draw * draw).sum()))


def competence(
    landscape: Landscape, thetas: NDArray[np.float32], optima: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Success probability of every module, float64 [..., modules].

    thetas: [..., modules, dim]; optima broadcasts against it.
    """
    offset = thetas.astype(np.float64) - optima
    return np.asarray(np.exp(-(offset * offset).sum(axis=-1) / (2 * landscape.width**2)))
