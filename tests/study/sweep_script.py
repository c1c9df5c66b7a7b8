"""Runs a sweep as a program of its own, for the test that interrupts it: DIRECTORY WORKERS."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "run"))

import numpy as np
from numpy.typing import NDArray
from vector_world import VectorWorld

from nograd.run.config import RunConfig
from nograd.run.evaluators import Built
from nograd.search.evaluation import GenerationResult
from nograd.study.local import LocalExecutor
from nograd.study.progress import Progress
from nograd.study.sweep import SweepInterruptedError, run_sweep
from nograd.study.sweep_directory import open_sweep


class SlowWorld(VectorWorld):
    """Slow enough to be interrupted in the middle."""

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        time.sleep(0.1)
        return super().evaluate(generation, thetas)


def slow(config: RunConfig) -> Built:
    return Built(SlowWorld(config.seed), facts={"world": "vector"})


def show(progress: Progress) -> None:
    if progress.event is not None:
        print(progress.event.kind, flush=True)


if __name__ == "__main__":
    sweep = open_sweep(Path(sys.argv[1]))
    try:
        run_sweep(sweep, LocalExecutor(int(sys.argv[2])), build=slow, on_progress=show)
    except SweepInterruptedError as error:
        print(error)
