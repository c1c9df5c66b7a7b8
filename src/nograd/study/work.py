"""One cell's work, wherever it is done: train or replay, from where its directory stands."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nograd.errors import NogradError
from nograd.run.config import RunConfig, results_bearing
from nograd.run.evaluators import Built
from nograd.run.loop import run
from nograd.study.cells import Cell
from nograd.study.heldout import evaluate_heldout
from nograd.study.plan import HeldOut, Replay
from nograd.study.replay import replay, replay_config, trained_run

Build = Callable[[RunConfig], Built]
"""From a configuration to an evaluator; `run.evaluators.build_evaluator` is the usual one."""


@dataclass(frozen=True)
class Job:
    """A cell with all that a worker needs, so it can be sent to one. source: sweep to replay from.
    heldout: what to evaluate when it is trained."""

    cell: Cell
    path: Path
    replay: Replay | None = None
    source: Path | None = None
    heldout: HeldOut | None = None


@dataclass(frozen=True)
class Event:
    """News of a job. Each job ends with exactly one "done" or "failed".

    step: the generation (or coefficients) just finished. text: why it failed, in a sentence, or what a
    "retry" follows. detail: traceback of a failure that is not the user's.
    """

    job: str
    kind: Literal["step", "retry", "done", "failed"]
    step: int | None = None
    text: str = ""
    detail: str = ""

    @property
    def final(self) -> bool:
        return self.kind in ("done", "failed")


OnEvent = Callable[[Event], None]


class SharedEvaluators:
    """Builds evaluators, and keeps the newest for the next cell that differs in its arm only.

    An evaluator cannot know the arm, and its results are a pure function of what it is asked. What outlives
    a change of seed (the loaded model) is the builder's to keep."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._newest: tuple[object, Built] | None = None

    def __call__(self, config: RunConfig) -> Built:
        key = results_bearing(config) | {"tasks": config.tasks, "execution": config.execution}
        key["search"] = {name: value for name, value in key["search"].items() if name != "arm"}
        if self._newest is None or self._newest[0] != key:
            self._newest = None
            self._newest = (key, self._build(config))
        return self._newest[1]


def attempt(job: Job, build: Build, on_event: OnEvent) -> None:
    """Do the job and report its steps and its end. An error is a "failed" event; an interrupt passes."""
    name = job.cell.name
    try:
        _do(job, build, lambda step: on_event(Event(name, "step", step)))
    except NogradError as error:
        on_event(Event(name, "failed", text=str(error)))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        on_event(Event(name, "failed", text=text, detail=traceback.format_exc()))
    else:
        on_event(Event(name, "done"))


def _do(job: Job, build: Build, on_step: Callable[[int], None]) -> None:
    if job.replay is None or job.source is None:
        built = build(job.cell.config)
        run(
            job.cell.config,
            built.evaluator,
            job.path,
            facts=built.facts,
            machine=built.machine,
            resume=True,
            on_generation=lambda record: on_step(record.generation),
        )
        if job.heldout is not None:
            evaluate_heldout(job.path, job.heldout, on_step)
        return
    trained = trained_run(job.cell, job.source)
    built = build(replay_config(job.cell, trained))
    replay(job.cell, job.replay, trained, built, job.path, on_step)
