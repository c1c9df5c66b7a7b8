"""Runs (or resumes) a black box in its own process, for the tests that kill it: DIRECTORY.

Prints a line when it begins and one after each generation."""

from __future__ import annotations

import sys
from pathlib import Path

from black_box_worlds import DIM, MODULES, Flaky

from nograd.run.tune_black_box import BlackBoxResult, tune_black_box


def tune(out: Path | str, *, resume: bool, concurrency: int, transient: int = 4) -> BlackBoxResult:
    """With failures of both kinds."""
    return tune_black_box(
        Flaky(transient=transient, permanent=20, seconds=0.002),
        MODULES,
        DIM,
        out=out,
        generations=25,
        concurrency=concurrency,
        retries=1,
        pause=0.001,
        settings=["search.arm=bandit"],
        resume=resume,
        progress=lambda record: print(record.generation, flush=True),
    )


if __name__ == "__main__":
    print("ready", flush=True)
    tune(sys.argv[1], resume=True, concurrency=3)
