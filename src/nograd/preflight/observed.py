"""Generations 0 and 1 as a run would meet them: what the untouched model does, asks for and costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from nograd.llm.requests import Request, Result
from nograd.preflight.memory import remembering
from nograd.preflight.setting import Setting
from nograd.search.es import ask, init
from nograd.search.evaluation import Evaluation, GenerationResult

BATCHES, ROLLOUTS = 2, 16
"""θ = 0 is evaluated on at least so many batches, and so many tasks."""


@dataclass(frozen=True)
class Centers:
    """θ = 0 on the batches of the first generations, and once more on the first of them."""

    results: tuple[GenerationResult, ...]
    again: GenerationResult

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """One per batch."""
        return tuple(result.evaluations[0] for result in self.results)

    @property
    def success(self) -> float:
        """Mean over the batches."""
        return float(np.mean([evaluation.success for evaluation in self.evaluations]))


@dataclass(frozen=True)
class Generation:
    """Generation 0, all candidates. seconds: of its evaluation. exchanges: what was asked of a language model,
    with its answer; empty where the evaluator has none."""

    result: GenerationResult
    seconds: float
    exchanges: Mapping[Request, Result] = field(default_factory=dict)


def centers(setting: Setting) -> Centers:
    """Evaluate θ = 0, the first batch twice."""
    zero = np.zeros((1, setting.settings.count, setting.settings.dim), np.float32)
    batches = max(BATCHES, math.ceil(ROLLOUTS / setting.config.tasks.batch))
    results = tuple(setting.evaluator.evaluate(generation, zero) for generation in range(batches))
    return Centers(results, setting.evaluator.evaluate(0, zero))


def first_generation(setting: Setting) -> Generation:
    """Evaluate the candidates of the run's generation 0."""
    evaluator, settings = setting.evaluator, setting.settings
    thetas = ask(settings, init(settings), evaluator.bottleneck(0)).thetas
    if setting.agent is not None:
        evaluator, memory = remembering(setting.agent)
        exchanges: Mapping[Request, Result] = memory.results
    else:
        exchanges = {}
    start = perf_counter()
    result = evaluator.evaluate(0, thetas)
    return Generation(result, perf_counter() - start, exchanges)
