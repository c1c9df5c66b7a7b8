"""From a configuration to a finished run: refuse early, build the evaluator, run."""

from __future__ import annotations

from pathlib import Path

from nograd.errors import RunError
from nograd.run import layout
from nograd.run.config import RunConfig
from nograd.run.evaluators import build_evaluator
from nograd.run.generation import read_generations
from nograd.run.lock import locked
from nograd.run.loop import OnGeneration, run
from nograd.run.resume import check_config
from nograd.run.summary import RunSummary


def run_config(
    config: RunConfig,
    directory: Path | str,
    *,
    resume: bool = False,
    on_generation: OnGeneration | None = None,
) -> RunSummary:
    """Build what the configuration names and tune it in a run directory.

    resume: go on with the run in the directory, if there is one.
    Raises NogradError, as `run.loop.run`; what a wrong directory causes, before anything is loaded."""
    check_directory(Path(directory), config, resume)
    built = build_evaluator(config)
    return run(
        config,
        built.evaluator,
        directory,
        facts=built.facts,
        machine=built.machine,
        resume=resume,
        on_generation=on_generation,
    )


def check_directory(directory: Path, config: RunConfig, resume: bool) -> None:
    """Raise RunError if the directory holds a run that may not be gone on with under this configuration.

    A run that ended before its first generation has nothing to lose: unless it is resumed, it makes way."""
    if not layout.holds_run(directory):
        return
    if resume:
        check_config(directory, config)
        return
    with locked(directory):
        if read_generations(directory):
            raise RunError(f"{directory} already holds a run; resume it or choose another directory")
        (directory / layout.CONFIG).unlink()
