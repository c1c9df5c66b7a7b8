"""A cheap real evaluator: a pipeline of modules whose success probabilities are smooth in their own theta."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.search.evaluation import Evaluation, GenerationResult
from nograd.search.streams import stream

MODULES = ("planner", "selector", "caller", "synthesizer")
DIM = 6
BATCH = 12


class VectorWorld:
    """A rollout succeeds if every module does; the tasks' luck is keyed by (seed, generation).

    Fitness is success plus the mean log-probability, and now and then NaN, as a real model's may be."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.directions = stream(seed, "directions").standard_normal((len(MODULES), DIM))

    @property
    def modules(self) -> Sequence[str]:
        return MODULES

    @property
    def dim(self) -> int:
        return DIM

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        luck = stream(self.seed, "tasks", generation).random((BATCH, len(MODULES)))
        broken = stream(self.seed, "broken", generation).random(len(thetas)) < 0.03
        rolled = [self._roll(theta, luck) for theta in thetas]
        evaluations = [
            self._evaluation(theta, worked, bool(nan))
            for theta, worked, nan in zip(thetas, rolled, broken, strict=True)
        ]
        return GenerationResult(
            evaluations=tuple(evaluations),
            counts={
                "requests_asked": int(sum(worked.size for worked in rolled)),
                "requests_computed": int(sum(worked.sum() for worked in rolled)),
                "tokens_prefilled": 100 + generation,
                "tokens_decoded": 10,
            },
            trajectories=tuple({"task": i, "worked": row.tolist()} for i, row in enumerate(rolled[0])),
        )

    def bottleneck(self, generation: int) -> int | None:
        return generation // 3 % len(MODULES)

    def _probabilities(self, theta: NDArray[np.float32]) -> NDArray[np.float64]:
        drive = 0.5 + (theta.astype(np.float64) * self.directions).sum(axis=1)
        return np.asarray(1 / (1 + np.exp(-drive)))

    def _roll(self, theta: NDArray[np.float32], luck: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(luck < self._probabilities(theta))

    def _evaluation(self, theta: NDArray[np.float32], worked: NDArray[np.bool_], nan: bool) -> Evaluation:
        success = float(worked.all(axis=1).mean())
        log_probability = float(np.log(self._probabilities(theta)).mean())
        failed = worked[~worked.all(axis=1)]
        blame = np.zeros(len(MODULES))
        for row in failed:
            blame[row.argmin()] += 1 / len(failed)
        return Evaluation(
            fitness=float("nan") if nan else success + 0.5 * log_probability,
            success=success,
            reward=success,
            blame=tuple(blame) if len(failed) else None,
            metrics={"tool_accuracy": float(worked[:, 1].mean()), "call_ok": float(worked[:, 2].mean())},
        )


def vector_config(*overrides: str) -> RunConfig:
    """A configuration that fits the vector world."""
    return load_config(None, ["evaluator=vector", f"subspace.dim={DIM}", *overrides])
