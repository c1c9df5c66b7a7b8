"""What a person's own agent, reward and blame return, checked as they run; the reward if they bring none."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from numbers import Real

import numpy as np

from nograd.agent.evaluator import Agent, BlameFunction, RewardFunction
from nograd.agent.scheduler import Llm
from nograd.agent.trajectory import Trajectory
from nograd.errors import ConfigError, unknown_name
from nograd.search.credit import check_simplex
from nograd.tasks.family import Task

OwnAgent = Callable[[Task, Llm], Awaitable[Trajectory | str]]
CHECK_REWARD = 0.15
ATTEMPT_COST = 0.03


def own_reward(trajectory: Trajectory, success: bool) -> float:
    """1[success] + 0.15 per passed check − 0.03 per further attempt: DESIGN §4 for any stages."""
    passed = sum(trajectory.checks.values())
    return float(success) + CHECK_REWARD * passed - ATTEMPT_COST * (trajectory.attempts - 1)


def checked_agent(agent: OwnAgent, stages: Sequence[str], shaping: float) -> Agent:
    """The agent; an answer given as text becomes a trajectory, anything else raises ConfigError.

    Where shaping weighs them, gold log-probabilities are asked of every task that has a gold answer."""

    async def checked(task: Task, llm: Llm) -> Trajectory:
        started = agent(task, llm)
        if not inspect.isawaitable(started):
            raise ConfigError(f"the agent returned {started!r} at once; define it with `async def`")
        outcome = await started
        trajectory = Trajectory(outcome) if isinstance(outcome, str) else outcome
        _check_trajectory(trajectory, stages, shaping if task.answer else 0.0)
        return trajectory

    return checked


def checked_reward(reward: RewardFunction) -> RewardFunction:
    """The reward function; what is no number raises ConfigError."""

    def checked(trajectory: Trajectory, success: bool) -> float:
        value: object = reward(trajectory, success)
        if not isinstance(value, Real):
            raise ConfigError(f"the reward function returned {value!r}; it must return a number")
        return float(value)

    return checked


def checked_blame(blame: BlameFunction) -> BlameFunction:
    """The blame function; what is not a share for each stage raises ConfigError."""

    def checked(trajectory: Trajectory, stages: Sequence[str]) -> tuple[float, ...]:
        shares = np.asarray(blame(trajectory, stages), np.float64)
        check_simplex("what the blame function returns", shares, len(stages))
        return tuple(shares.tolist())

    return checked


def _check_trajectory(trajectory: object, stages: Sequence[str], shaping: float) -> None:
    if not isinstance(trajectory, Trajectory):
        raise ConfigError(f"the agent returned {trajectory!r}; it must return a text or a nograd.Trajectory")
    for stage in trajectory.checks:
        if stage not in stages:
            raise unknown_name("stage in a trajectory's checks", stage, stages)
    if shaping and not trajectory.log_probabilities:
        raise ConfigError(
            f"shaping = {shaping} weighs gold log-probabilities, but the agent returned none; return a "
            f"Trajectory with what `await llm.score(stage, messages, gold)` gave, or set shaping=0"
        )
