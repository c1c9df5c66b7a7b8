"""Runs (or resumes) a vector run in its own process, for the tests that kill it: DIRECTORY [SETTING …].

Prints a line when it begins and one after each generation."""

from __future__ import annotations

import sys

from vector_world import VectorWorld, vector_config

from nograd.run.loop import run

if __name__ == "__main__":
    config = vector_config(*sys.argv[2:])
    print("ready", flush=True)
    run(
        config,
        VectorWorld(config.seed),
        sys.argv[1],
        resume=True,
        on_generation=lambda record: print(record.generation, flush=True),
    )
