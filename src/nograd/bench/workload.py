"""The generation that every way runs: the same θ's and tasks, and whose trajectories are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.agent.scheduler import Rollout, Scheduler
from nograd.agent.trajectory import Trajectory
from nograd.search.arms import parse_arm
from nograd.search.es import SearchSettings, ask, init
from nograd.tasks.family import Task


@dataclass(frozen=True)
class Workload:
    """thetas: float32 [candidates, modules, size]; the first is the center."""

    agent: Callable[..., Any]
    tasks: Sequence[Task]
    thetas: NDArray[np.float32]

    def keys(self) -> list[tuple[int, bytes]]:
        """The distinct (module, θ of the module)."""
        rows = (
            (module, np.ascontiguousarray(row).tobytes()) for theta in self.thetas for module, row in enumerate(theta)
        )
        return list(dict.fromkeys(rows))


@dataclass(frozen=True)
class Measured:
    """One way's run of a workload. tokens: those that went through the model."""

    seconds: float
    tokens: int
    trajectories: list[Trajectory]


def candidates(modules: Sequence[str], size: int, pairs: int, seed: int) -> NDArray[np.float32]:
    """The center and the mirrored pairs of generation 0 under `uniform`, about a center away from 0."""
    settings = SearchSettings(tuple(modules), size, seed, pairs=pairs, arm=parse_arm("uniform"))
    proposal = ask(settings, init(settings))
    center = np.random.default_rng(seed).normal(0, 0.1, (1, len(modules), size))
    return (proposal.thetas + center).astype(np.float32)


def run_together(scheduler: Scheduler, work: Workload) -> Measured:
    """All rollouts of all candidates at once."""
    start = perf_counter()
    scheduler.forget()
    rollouts = [Rollout(partial(work.agent, task), theta) for theta in work.thetas for task in work.tasks]
    trajectories = scheduler.run(rollouts)
    return Measured(perf_counter() - start, _tokens(scheduler), trajectories)


def run_one_by_one(scheduler: Scheduler, work: Workload) -> Measured:
    """Candidate by candidate; nothing is kept from one to the next."""
    start = perf_counter()
    trajectories: list[Trajectory] = []
    tokens = 0
    for theta in work.thetas:
        scheduler.forget()
        trajectories += scheduler.run([Rollout(partial(work.agent, task), theta) for task in work.tasks])
        tokens += _tokens(scheduler)
    return Measured(perf_counter() - start, tokens, trajectories)


def differing(one: Measured, other: Measured) -> int:
    """Trajectories whose texts differ in any stage."""
    return sum(a.steps != b.steps for a, b in zip(one.trajectories, other.trajectories, strict=True))


def _tokens(scheduler: Scheduler) -> int:
    return scheduler.engine.counts.tokens_prefilled + scheduler.engine.counts.tokens_decoded
