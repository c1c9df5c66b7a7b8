"""An evaluator of your own: all candidates of a generation at once, where that is faster than one by one.

    python examples/black_box_class.py [DIR]
    nograd run --set evaluator=black_box_class:make --generations 30     (started in this folder)

Two shops order bread for every day. A shop's coefficients are its order and what it orders beside on a weekend,
in tens of loaves away from START. A day is a success if both shops serve everybody and throw little away.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import nograd
from nograd import Evaluation, GenerationResult, RunConfig
from nograd.search.streams import stream

SHOPS = ("station", "market")
DAYS = 84
DEMAND = np.array([[30.0, -10.0], [20.0, 25.0]])
"""[shops, (mean, more on a weekend)]"""
START = np.array([20.0, 0.0])
LEFT_OVER = 15


class Bakery:
    """Evaluates [candidates, shops, 2] with arrays over all candidates and days."""

    modules: Sequence[str] = SHOPS
    dim = 2

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def bottleneck(self, generation: int) -> int | None:
        """Unknown."""
        del generation
        return None

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        weekend = np.arange(DAYS) % 7 >= 5
        mean = DEMAND[:, :1] + DEMAND[:, 1:] * weekend
        demand = stream(self.seed, "demand", generation).poisson(mean)
        orders = START + 10 * thetas
        left_over = orders[..., :1] + orders[..., 1:] * weekend - demand
        good = (left_over >= 0) & (left_over <= LEFT_OVER)
        cost = np.where(left_over < 0, -left_over, left_over / 3).mean(axis=(1, 2))
        return GenerationResult(
            tuple(self._evaluation(good[row], -float(cost[row])) for row in range(len(thetas))),
            {"shop_days": good.size},
        )

    def _evaluation(self, good: NDArray[np.bool_], fitness: float) -> Evaluation:
        """good: bool [shops, days]."""
        bad = (~good).sum(axis=1)
        blame = tuple((bad / bad.sum()).tolist()) if bad.any() else None
        return Evaluation(fitness, float(good.all(axis=0).mean()), fitness, blame)


def make(config: RunConfig) -> Bakery:
    """What `evaluator=black_box_class:make` names. To add facts, return a `nograd.run.evaluators.Built`."""
    return Bakery(config.seed)


if __name__ == "__main__":
    settings = ["evaluator=black_box_class:make", "search.generations=30", "search.arm=soft"]
    out = sys.argv[1] if len(sys.argv) > 1 else "runs/black-box-class"
    summary = nograd.run_config(nograd.load_config(None, settings), out)
    print(f"good days: {summary.zero_theta_success:.2f} untouched, {summary.last5_success:.2f} tuned")
