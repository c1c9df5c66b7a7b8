"""The LLM agent as an evaluator: rollouts of all candidates on a batch of tasks, summed up per candidate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.agent.four_stage import STAGES
from nograd.agent.scheduler import Llm, Rollout, Scheduler
from nograd.agent.trajectory import RewardWeights, Trajectory, blame
from nograd.search.evaluation import Evaluation, GenerationResult
from nograd.search.streams import stream
from nograd.tasks.batches import batch
from nograd.tasks.family import Task, TaskFamily

Agent = Callable[[Task, Llm], Awaitable[Trajectory]]
RewardFunction = Callable[[Trajectory, bool], float]
BlameFunction = Callable[[Trajectory, Sequence[str]], tuple[float, ...]]


@dataclass(frozen=True)
class Outcome:
    """One candidate on some tasks: its evaluation, and a record per task (see `Trajectory.record`)."""

    evaluation: Evaluation
    records: tuple[dict[str, Any], ...]


class AgentEvaluator:
    """Evaluates θ on task batches keyed by (seed, generation).

    size: coefficients per module. shaping: w, the weight of the mean gold log-probability in the fitness.
    """

    def __init__(
        self,
        agent: Agent,
        family: TaskFamily,
        scheduler: Scheduler,
        size: int,
        *,
        seed: int,
        batch_size: int = 16,
        shaping: float = 0.5,
        reward: RewardFunction = RewardWeights(),  # noqa: B008 - frozen
        blame_function: BlameFunction = blame,
    ) -> None:
        self.agent, self.family, self.scheduler = agent, family, scheduler
        self.seed, self.batch_size, self.shaping = seed, batch_size, shaping
        self.reward, self.blame = reward, blame_function
        self._size = size

    @property
    def modules(self) -> Sequence[str]:
        return tuple(self.scheduler.stages)

    @property
    def dim(self) -> int:
        return self._size

    def bottleneck(self, generation: int) -> int | None:
        """Unknown: only the synthetic environment has a true bottleneck."""
        del generation
        return None

    def tasks(self, generation: int) -> list[Task]:
        """The batch of a generation, without replacement."""
        chosen = batch(len(self.family.tasks), self.batch_size, stream(self.seed, "batch", generation))
        return [self.family.tasks[i] for i in chosen]

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        """See `search.evaluation.Evaluator`."""
        return self.evaluate_tasks(self.tasks(generation), thetas)

    def evaluate_tasks(self, tasks: Sequence[Task], thetas: NDArray[np.float32]) -> GenerationResult:
        """All candidates on these tasks. thetas: float32 [candidates, modules, size]."""
        outcomes = self.outcomes(tasks, thetas)
        return GenerationResult(tuple(o.evaluation for o in outcomes), self._counts(), outcomes[0].records)

    def outcomes(self, tasks: Sequence[Task], thetas: NDArray[np.float32]) -> list[Outcome]:
        """The same with the records of every candidate, not only of the first."""
        return [self.outcome(tasks, trajectories) for trajectories in self.trajectories(tasks, thetas)]

    def trajectories(self, tasks: Sequence[Task], thetas: NDArray[np.float32]) -> list[list[Trajectory]]:
        """Every candidate's trajectories, in task order."""
        self.scheduler.forget()
        rollouts = [Rollout(partial(self.agent, task), theta, task.id) for theta in thetas for task in tasks]
        done = self.scheduler.run(rollouts)
        return [done[i : i + len(tasks)] for i in range(0, len(done), len(tasks))]

    def outcome(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> Outcome:
        """One candidate's trajectories on these tasks, summed up."""
        success = [self._succeeded(task, t) for task, t in zip(tasks, trajectories, strict=True)]
        records = [t.record(task.id, ok) for task, t, ok in zip(tasks, trajectories, success, strict=True)]
        return Outcome(self._evaluation(trajectories, success), tuple(records))

    def _succeeded(self, task: Task, trajectory: Trajectory) -> bool:
        """Whether the answer is right; a text to relay can only be had from a call that passed its check."""
        relayed = not task.relay or trajectory.checks.get("caller", False)
        return relayed and self.family.succeeded(task, trajectory.answer)

    def _evaluation(self, trajectories: Sequence[Trajectory], success: Sequence[bool]) -> Evaluation:
        reward = float(np.mean([self.reward(t, ok) for t, ok in zip(trajectories, success, strict=True)]))
        failed = [self.blame(t, self.modules) for t, ok in zip(trajectories, success, strict=True) if not ok]
        metrics = _metrics(trajectories, success, self.modules)
        shaping = self.shaping * metrics["gold_log_probability"] if self.shaping else 0.0
        return Evaluation(
            fitness=reward + shaping,
            success=float(np.mean(success)),
            reward=reward,
            blame=tuple(np.mean(failed, axis=0).tolist()) if failed else None,
            metrics=metrics,
        )

    def _counts(self) -> dict[str, int]:
        requests, engine = self.scheduler.counts, self.scheduler.engine.counts
        return {
            "requests_asked": requests.asked,
            "requests_computed": requests.computed,
            "tokens_prefilled": engine.tokens_prefilled,
            "tokens_decoded": engine.tokens_decoded,
        }


def _metrics(
    trajectories: Sequence[Trajectory], success: Sequence[bool], stages: Sequence[str]
) -> dict[str, float]:
    """Batch means; a rate over an empty set is nan. The paper's names for the four-stage agent, `STAGE_ok` for
    every stage of any other: how often its check passed, of the rollouts in which it was checked."""
    own = tuple(stages) != STAGES
    rates = _check_rates(trajectories, stages) if own else _four_stage_rates(trajectories, success)
    return rates | {
        "attempts": _mean([t.attempts for t in trajectories]),
        "gold_log_probability": _mean([_mean(list(t.log_probabilities.values())) for t in trajectories]),
    }


def _four_stage_rates(trajectories: Sequence[Trajectory], success: Sequence[bool]) -> dict[str, float]:
    relayed = [ok for t, ok in zip(trajectories, success, strict=True) if t.checks.get("caller")]
    return {
        "tool_accuracy": _mean([t.checks.get("selector", False) for t in trajectories]),
        "call_ok": _mean([t.checks.get("caller", False) for t in trajectories]),
        "relay": _mean(relayed),
    }


def _check_rates(trajectories: Sequence[Trajectory], stages: Sequence[str]) -> dict[str, float]:
    return {
        f"{stage}_ok": _mean([t.checks[stage] for t in trajectories if stage in t.checks]) for stage in stages
    }


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
