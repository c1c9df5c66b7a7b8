"""Evaluate the coefficients that runs saved on a task family, without training.

Several coefficients go through the engine together, and runs that share a model and an agent share one engine;
what a run already has is not computed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from nograd.agent.evaluator import Outcome
from nograd.errors import ConfigError, NogradError
from nograd.run import layout
from nograd.run.build_agent import engine_spec, tasks_hash
from nograd.run.evaluations import (
    EvaluationRecord,
    checkpoint_of,
    header,
    read_evaluations,
    write_evaluations,
)
from nograd.run.files import disk_errors
from nograd.run.load import RunRecord
from nograd.run.lock import locked
from nograd.run.rebuild import as_it_ran, check_agent, on_tasks, rebuild
from nograd.tasks.family import TaskFamily
from nograd.tasks.registry import family as build_family

TOGETHER = 8
"""Distinct coefficients per call of the evaluator."""

OnEvaluation = Callable[[RunRecord, EvaluationRecord], None]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A run and its results on a family, by generation (0: the untouched model)."""

    run: RunRecord
    records: Mapping[int, EvaluationRecord]


@dataclass(frozen=True, eq=False)
class _Book:
    """A run's results on the family, being written. wanted: the generations that were asked for."""

    run: RunRecord
    family: str
    head: Mapping[str, Any]
    wanted: tuple[int, ...]
    records: dict[int, EvaluationRecord]

    def missing(self) -> list[int]:
        return [generation for generation in self.wanted if generation not in self.records]

    def add(self, generation: int, outcome: Outcome) -> EvaluationRecord:
        """Take a result and write all of the run's down."""
        evaluation = outcome.evaluation
        record = EvaluationRecord(
            generation=generation,
            checkpoint=checkpoint_of(self.run, generation),
            success=evaluation.success,
            reward=evaluation.reward,
            metrics=dict(evaluation.metrics),
            outcomes=tuple({k: v for k, v in row.items() if k != "steps"} for row in outcome.records),
        )
        self.records[generation] = record
        write_evaluations(layout.evaluations(self.run.path, self.family), self.head, self.records.values())
        return record


def evaluate(
    runs: Sequence[RunRecord],
    family: str | TaskFamily,
    generations: str = "last",
    *,
    device: str = "auto",
    on_evaluation: OnEvaluation | None = None,
) -> list[Evaluated]:
    """Evaluate the runs' coefficients on all tasks of the family and keep the results in the runs.

    generations: see `parse_generations`. on_evaluation: told of each result once it is written; what is written
    is not computed again. Raises NogradError with what to change."""
    tasks = build_family(family) if isinstance(family, str) else family
    with ExitStack() as locks:
        books = [locks.enter_context(_opened(run, tasks, generations)) for run in runs]
        for together in _shared(books, device):
            _evaluate(together, tasks, device, on_evaluation)
    return [Evaluated(book.run, {g: book.records[g] for g in book.wanted}) for book in books]


def parse_generations(text: str, done: int) -> tuple[int, ...]:
    """Which coefficients of a run with `done` generations: "all", "last", or numbers and ranges such as
    "28-30" or "0,5,10". 0, the untouched model, is always among them.

    Raises ConfigError for any other text, or a generation that the run does not have."""
    if text in ("all", "last"):
        return tuple(range(done + 1)) if text == "all" else tuple(sorted({0, done}))
    chosen = {0}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise ConfigError(f"generations = {text!r} is not understood; write all, last, 28-30 or 0,5,10")
        if last > done:
            raise ConfigError(f"generations = {text!r} was asked for, but the run has only {done}; ask for fewer")
        chosen |= set(range(first, last + 1))
    return tuple(sorted(chosen))


@contextmanager
def _opened(run: RunRecord, tasks: TaskFamily, generations: str) -> Iterator[_Book]:
    """The run's results so far, under the lock of their folder."""
    try:
        wanted = parse_generations(generations, len(run.generations))
    except NogradError as error:
        raise ConfigError(f"{run.path}: {error}") from None
    check_agent(run)
    folder = layout.evaluations(run.path, tasks.name).parent
    with disk_errors():
        folder.mkdir(exist_ok=True)
    with locked(folder):
        head = header(run, tasks.name, tasks_hash(tasks))
        yield _Book(run, tasks.name, head, wanted, read_evaluations(run, tasks.name, head))


def _shared(books: Sequence[_Book], device: str) -> list[list[_Book]]:
    """The books that still lack something, in groups of one engine and one agent."""
    groups: dict[Any, list[_Book]] = {}
    for book in books:
        if book.missing():
            config = as_it_ran(book.run, device)
            spec = engine_spec(config, len(book.run.modules))
            groups.setdefault((spec, config.agent, config.reward), []).append(book)
    return list(groups.values())


def _evaluate(
    books: Sequence[_Book], tasks: TaskFamily, device: str, on_evaluation: OnEvaluation | None
) -> None:
    """Everything that books of one group lack. Equal coefficients (θ = 0 above all) are evaluated once."""
    own = [rebuild(book.run, device) for book in books]
    evaluator = on_tasks(own[0], books[0].run.config, tasks)
    wanted: dict[bytes, list[tuple[_Book, int]]] = {}
    for book in books:
        for generation in book.missing():
            wanted.setdefault(book.run.theta[generation].tobytes(), []).append((book, generation))
    distinct = list(wanted.values())
    for part in (distinct[i : i + TOGETHER] for i in range(0, len(distinct), TOGETHER)):
        thetas = np.stack([owners[0][0].run.theta[owners[0][1]] for owners in part])
        outcomes = evaluator.outcomes(tasks.tasks, thetas)
        for owners, outcome in zip(part, outcomes, strict=True):
            for book, generation in owners:
                record = book.add(generation, outcome)
                if on_evaluation:
                    on_evaluation(book.run, record)
