"""Small plans on the vector world, and builders that worker processes can import by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from vector_world import VectorWorld

from nograd.run.config import RunConfig
from nograd.run.evaluators import Built
from nograd.search.evaluation import GenerationResult
from nograd.study.plan_file import PlanFile, load_plan
from nograd.study.sweep_directory import Sweep, create_sweep, open_sweep

HEAD = """
title = "Test"
baseline = "uniform"
seeds = "{seeds}"

[settings]
evaluator = "vector"
subspace = {{ dim = 6 }}
search = {{ generations = {generations} }}

[arms]
uniform = "uniform"
hard = "hard"
locked = {{ arm = "lock:module=caller", search.clip = 0.1 }}
"""

CRASH_AT = 3
"""Generation in which a `crashing` evaluator kills its process."""


def build(config: RunConfig) -> Built:
    """The vector world."""
    return Built(VectorWorld(config.seed), facts={"world": "vector"})


def write_plan(folder: Path, text: str = "", *, seeds: str = "1-2", generations: int = 4) -> PlanFile:
    """A plan file of three arms, with more TOML at its end."""
    path = folder / "test.toml"
    path.write_text(HEAD.format(seeds=seeds, generations=generations) + text, encoding="utf-8")
    return load_plan(path)


def new_sweep(folder: Path, text: str = "", *, seeds: str = "1-2", generations: int = 4) -> Sweep:
    """A sweep of such a plan, in the folder's subfolder "sweep"."""
    return create_sweep(folder / "sweep", write_plan(folder, text, seeds=seeds, generations=generations))


def again(sweep: Sweep) -> Sweep:
    """The sweep as a later session sees it."""
    return open_sweep(sweep.root)


class DeadlyWorld(VectorWorld):
    """Kills its process once in each of some cells, as a lack of memory would. marks: folder that remembers."""

    def __init__(self, seed: int, marks: Path, times: int) -> None:
        super().__init__(seed)
        self._marks = marks
        self._times = times

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        if generation == CRASH_AT and self.seed == 1:
            deaths = len(list(self._marks.iterdir()))
            if deaths < self._times:
                (self._marks / str(deaths)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().evaluate(generation, thetas)


class DeadlyBuilder:
    """Builds deadly worlds; sent to workers by value, so it carries where the marks are."""

    def __init__(self, marks: Path, times: int) -> None:
        marks.mkdir()
        self.marks = marks
        self.times = times

    def __call__(self, config: RunConfig) -> Built:
        return Built(DeadlyWorld(config.seed, self.marks, self.times), facts={"world": "vector"})
