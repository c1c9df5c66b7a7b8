"""Runs (or resumes) an agent's run in its own process, for the tests that kill it: DIRECTORY [SETTING …].

Prints a line when it begins and one after each generation."""

from __future__ import annotations

import sys

from nograd.run.config_source import load_config
from nograd.run.start import run_config

if __name__ == "__main__":
    print("ready", flush=True)
    run_config(
        load_config(None, sys.argv[2:]),
        sys.argv[1],
        resume=True,
        on_generation=lambda record: print(record.generation, flush=True),
    )
