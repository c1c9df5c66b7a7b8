"""How candidates behave on a few tasks: success, gold's likelihood, calls that can be read, texts in circles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.toolcall import ParsedCall, parse_call
from nograd.llm.requests import Completion
from nograd.preflight.memory import remembering
from nograd.preflight.probe import Probe
from nograd.preflight.setting import Setting
from nograd.tasks.family import Task

GENERATION = 1
"""Its tasks are looked at: not those on which a step was estimated (generation 0's)."""
UNLIKELY, LOOPING = 1.0, 0.25


@dataclass(frozen=True)
class Behaviour:
    """success: share of the tasks. gold: mean log-probability per token of the gold targets. parsed: of the
    caller's texts, the share that holds a call. looping: of the completions, the share that ends in circles
    (see `loops`). nan where there is nothing to count."""

    success: float
    gold: float = math.nan
    parsed: float = math.nan
    looping: float = math.nan

    def wrecked(self, before: Behaviour) -> bool:
        """Whether this is what T2 calls divergence: success at most half of what it was, and one sign that it is
        not by chance: gold e times less likely per token, half of the calls (or all) no longer to be read, a
        quarter of the completions newly in circles. Where none can be counted, success alone decides."""
        halved = self.success <= before.success / 2
        if math.isnan(before.looping):
            return halved and before.success > 0
        unlikely = self.gold <= before.gold - UNLIKELY
        unread = before.parsed > 0 and not self.parsed > before.parsed / 2
        return halved and (unlikely or unread or self.looping >= before.looping + LOOPING)


def behaviours(setting: Setting, probe: Probe, thetas: NDArray[np.float32]) -> list[Behaviour]:
    """Of every candidate, on as many tasks as the probe had. thetas: float32 [candidates, modules, size]."""
    if probe.listening is None:
        evaluations = setting.evaluator.evaluate(GENERATION, thetas).evaluations
        return [Behaviour(evaluation.success) for evaluation in evaluations]
    warm, _ = remembering(probe.listening.evaluator)
    tasks = warm.tasks(GENERATION)[: len(probe.listening.tasks)]
    warm.trajectories(tasks, thetas)
    return [_alone(warm, tasks, theta) for theta in thetas]


def _alone(warm: AgentEvaluator, tasks: Sequence[Task], theta: NDArray[np.float32]) -> Behaviour:
    """One candidate again, now that nothing is left to compute, to see which requests are its own."""
    evaluator, memory = remembering(warm)
    (outcome,) = evaluator.outcomes(tasks, theta[None])
    written = [result for result in memory.results.values() if isinstance(result, Completion)]
    return Behaviour(
        success=outcome.evaluation.success,
        gold=outcome.evaluation.metrics["gold_log_probability"],
        parsed=_mean([isinstance(parse_call(text), ParsedCall) for text in _calls(outcome.records)]),
        looping=_mean([loops(completion) for completion in written]),
    )


def loops(completion: Completion) -> bool:
    """Whether it was cut at its limit while repeating itself: one n-gram fills its last half, at least three
    times over."""
    tokens = completion.tokens
    if completion.finish != "length":
        return False
    return any(_periodic(tokens[-max(3 * n, len(tokens) // 2) :], n) for n in range(1, len(tokens) // 3 + 1))


def _periodic(tokens: Sequence[int], n: int) -> bool:
    return all(a == b for a, b in zip(tokens, tokens[n:], strict=False))


def _calls(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the stage named caller wrote."""
    return [step["text"] for record in records for step in record["steps"] if step["stage"] == "caller"]


def _mean(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else math.nan
