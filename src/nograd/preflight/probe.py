"""Mirrored pairs around θ = 0, as many in every module: the evidence that the detectors share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.four_stage import FourStageAgent
from nograd.llm.requests import Request
from nograd.preflight.memory import Memory, remembering
from nograd.preflight.setting import Setting
from nograd.search.arms import UNIFORM
from nograd.search.es import Proposal, Update, ask, init, tell
from nograd.search.evaluation import Evaluation
from nograd.tasks.family import Task

PAIRS, TASKS, BATCHES = 4, 8, 3
"""Pairs per module, and most tasks, that are spent; batches where single tasks cannot be told apart."""


@dataclass(frozen=True, eq=False)
class Listening:
    """The LLM agent, its requests remembered; it scores gold targets even where the run does not.

    tasks: those of generation 0, at most TASKS. center: the requests of θ = 0 on them."""

    evaluator: AgentEvaluator
    memory: Memory
    tasks: tuple[Task, ...]
    center: tuple[Request, ...]


@dataclass(frozen=True, eq=False)
class Probe:
    """What the pairs did.

    proposal: the pairs; their ε are those of a run's generation 0. evaluations: of the center, then of + and −
    of each pair. differences: float64 [pairs, samples], (F⁺ − F⁻)/2 of single tasks, or of whole batches where
    the evaluator tells nothing of its tasks. batch: samples that one batch of the run averages over.
    step: float64 [modules, dim], lr · g of all pairs together. first: what the run's own first generation does
    on these tasks. listening: None where the evaluator asks no language model.
    """

    proposal: Proposal
    evaluations: tuple[Evaluation, ...]
    differences: NDArray[np.float64]
    batch: int
    step: NDArray[np.float64]
    first: Update
    listening: Listening | None

    def pairs_of(self, module: int) -> NDArray[np.int64]:
        """Numbers of a module's pairs."""
        return np.flatnonzero(self.proposal.modules == module)


def probe(setting: Setting, pairs: int = PAIRS, tasks: int = TASKS) -> Probe:
    """Evaluate `pairs` mirrored pairs per module, and the candidates of the run's first generation."""
    settings, start = setting.settings, init(setting.settings)
    even = replace(settings, arm=UNIFORM, pairs=pairs * settings.count, clip=math.inf)
    spread, own = ask(even, start), ask(settings, start, setting.evaluator.bottleneck(0))
    thetas = np.concatenate([spread.thetas, own.thetas])
    if setting.agent is None:
        evaluations, fitness, batch, listening = *_batches(setting, thetas), None
    else:
        listening = _listen(setting.agent, tasks)
        evaluations, fitness = _tasks(listening, thetas)
        batch = len(setting.agent.tasks(0))
    count = len(spread.thetas)
    _, first = tell(settings, start, own, evaluations[count:])
    stepped, _ = tell(even, start, spread, evaluations[:count])
    return Probe(
        proposal=spread,
        evaluations=tuple(evaluations[:count]),
        differences=(fitness[1:count:2] - fitness[2:count:2]) / 2,
        batch=batch,
        step=stepped.theta.astype(np.float64),
        first=first,
        listening=listening,
    )


def _listen(agent: AgentEvaluator, count: int) -> Listening:
    listening, memory = remembering(agent)
    if isinstance(listening.agent, FourStageAgent):
        listening.agent = replace(listening.agent, scoring=True)
    tasks = tuple(agent.tasks(0)[:count])
    listening.trajectories(tasks, np.zeros((1, len(agent.modules), agent.dim), np.float32))
    return Listening(listening, memory, tasks, tuple(memory.results))


def _tasks(listening: Listening, thetas: NDArray[np.float32]) -> tuple[list[Evaluation], NDArray[np.float64]]:
    """Every candidate's evaluation, and its fitness on every task, [candidates, tasks]."""
    evaluator, tasks = listening.evaluator, listening.tasks
    candidates = evaluator.trajectories(tasks, thetas)
    alone = [
        [evaluator.outcome([task], [one]).evaluation.fitness for task, one in zip(tasks, candidate, strict=True)]
        for candidate in candidates
    ]
    return [evaluator.outcome(tasks, candidate).evaluation for candidate in candidates], np.array(alone)


def _batches(setting: Setting, thetas: NDArray[np.float32]) -> tuple[Sequence[Evaluation], NDArray[np.float64], int]:
    """Generation 0's evaluations, every candidate's fitness on each of the first batches, and 1: a sample is
    a whole batch."""
    results = [setting.evaluator.evaluate(generation, thetas).evaluations for generation in range(BATCHES)]
    fitness = np.array([[evaluation.fitness for evaluation in batch] for batch in results])
    return results[0], fitness.T, 1
