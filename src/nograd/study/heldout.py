"""The held-out learning curve of a trained cell, kept in its run as `nograd evaluate` keeps it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from nograd.run.evaluations import read_evaluations
from nograd.run.load import load_run
from nograd.study.plan import HeldOut


def evaluate_heldout(path: Path, plan: HeldOut, on_step: Callable[[int], None]) -> None:
    """Evaluate the coefficients that the plan wants and the finished run lacks; on_step: told of each by the
    number of the step that it is, the generations being the first ones. Raises NogradError."""
    from nograd.run.evaluate import evaluate  # loads torch

    run = load_run(path)
    done = len(run.generations)
    wanted = plan.after(done)
    there = read_evaluations(run, plan.family)
    steps = count(done + sum(after in there for after in wanted))
    evaluate(
        [run],
        plan.family,
        ",".join(map(str, wanted)),
        device=run.config.execution.device,
        on_evaluation=lambda _run, _record: on_step(next(steps)),
    )
