"""The synthetic environment for several seeds side by side, and as the evaluator of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nograd.search.evaluation import Evaluation, GenerationResult
from nograd.search.streams import stream
from nograd.synthetic.landscape import CALIBRATED, Landscape, competence, optimum
from nograd.synthetic.regimes import MODULES, Regime
from nograd.synthetic.rollouts import TASK_REWARD, Rewards, Scores, blame, score


class World:
    """A regime under several seeds.

    All randomness is keyed by seed and generation: arms of one seed meet the same optima and the same luck,
    and so do all candidates of a generation (common random numbers). Each seed's numbers are the same bits
    whichever other seeds are beside it.
    """

    def __init__(
        self,
        regime: Regime,
        seeds: Sequence[int],
        landscape: Landscape = CALIBRATED,
        rewards: Rewards = TASK_REWARD,
    ) -> None:
        self.regime = regime
        self.seeds = tuple(seeds)
        self.landscape = landscape
        self.rewards = rewards
        self._optima: dict[int, NDArray[np.float64]] = {}

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> list[list[Evaluation]]:
        """The evaluations of every seed's candidates, the center first.

        thetas: float32 [seeds, candidates, modules, dim]. A module does its part in a task where its luck,
        uniform on [0, 1), lies below its success probability.
        """
        chance = competence(self.landscape, thetas, self._optimum(generation)[:, None])
        worked = self._luck(generation)[:, None] < chance[:, :, None, :]
        scores = score(worked, self.rewards)
        return [_evaluations(scores, row, blame(worked[row, 0])) for row in range(len(self.seeds))]

    def _optimum(self, generation: int) -> NDArray[np.float64]:
        """float64 [seeds, modules, dim]; worked out once per place of the bottleneck."""
        visit = self.regime.visit(generation)
        if visit not in self._optima:
            self._optima[visit] = np.stack(
                [optimum(self.landscape, seed, visit, self.regime.dim) for seed in self.seeds]
            )
        return self._optima[visit]

    def _luck(self, generation: int) -> NDArray[np.float64]:
        """float64 [seeds, tasks, modules]."""
        shape = (self.rewards.batch, len(MODULES))
        return np.stack([stream(seed, "synthetic", "luck", generation).random(shape) for seed in self.seeds])


def _evaluations(scores: Scores, row: int, blamed: tuple[float, ...] | None) -> list[Evaluation]:
    columns = (scores.reward, scores.success, scores.tool_accuracy, scores.call_ok)
    numbers = zip(*(column[row].tolist() for column in columns), strict=True)
    center, *others = [
        Evaluation(reward, success, reward, metrics={"tool_accuracy": tool, "call_ok": call})
        for reward, success, tool, call in numbers
    ]
    return [replace(center, blame=blamed), *others]


class SyntheticEvaluator:
    """The synthetic environment as the evaluator of one run. Fitness is the reward, without shaping."""

    def __init__(
        self,
        regime: Regime,
        seed: int,
        landscape: Landscape = CALIBRATED,
        rewards: Rewards = TASK_REWARD,
    ) -> None:
        self._world = World(regime, (seed,), landscape, rewards)

    @property
    def modules(self) -> Sequence[str]:
        return MODULES

    @property
    def dim(self) -> int:
        return self._world.regime.dim

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        """Evaluate thetas, float32 [candidates, modules, dim], on this generation's luck."""
        (evaluations,) = self._world.evaluate(generation, thetas[None])
        return GenerationResult(
            evaluations=tuple(evaluations), counts={"rollouts": len(thetas) * self._world.rewards.batch}
        )

    def bottleneck(self, generation: int) -> int | None:
        return self._world.regime.bottleneck(generation)
