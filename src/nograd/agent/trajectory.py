"""The record of one rollout, its reward, and whom to blame when it failed (DESIGN §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """What one stage wrote, and what came of it (a tool's output, an error); for people to read."""

    stage: str
    text: str
    outcome: str = ""


@dataclass(frozen=True)
class Trajectory:
    """One rollout.

    answer: the final answer. checks: stage -> whether its own, verifiable check passed, in the order of the
    stages (a stage without a check is absent). attempts: calls that were tried. log_probabilities: gold
    target -> mean log-probability per token; empty where none were asked for.
    """

    answer: str
    steps: tuple[Step, ...] = ()
    checks: Mapping[str, bool] = field(default_factory=dict)
    attempts: int = 1
    log_probabilities: Mapping[str, float] = field(default_factory=dict)

    def record(self, task: str, success: bool) -> dict[str, Any]:
        """As a JSON-able record."""
        return {
            "task": task,
            "answer": self.answer,
            "success": success,
            "checks": dict(self.checks),
            "attempts": self.attempts,
            "steps": [{"stage": s.stage, "text": s.text, "outcome": s.outcome} for s in self.steps],
        }


@dataclass(frozen=True)
class RewardWeights:
    """reward = 1[success] + tool · 1[selector's check] + call · 1[caller's check] − attempt_cost · (attempts − 1)."""

    tool: float = 0.15
    call: float = 0.15
    attempt_cost: float = 0.03

    def __call__(self, trajectory: Trajectory, success: bool) -> float:
        return (
            float(success)
            + self.tool * trajectory.checks.get("selector", False)
            + self.call * trajectory.checks.get("caller", False)
            - self.attempt_cost * (trajectory.attempts - 1)
        )


def blame(trajectory: Trajectory, stages: Sequence[str]) -> tuple[float, ...]:
    """The share of each stage in a failure of the four-stage agent: all of it falls on the first stage whose
    check failed, or on the last stage where every check passed."""
    guilty = next((stage for stage, passed in trajectory.checks.items() if not passed), stages[-1])
    return tuple(float(stage == guilty) for stage in stages)


def blame_last_failed(trajectory: Trajectory, stages: Sequence[str]) -> tuple[float, ...]:
    """The share of each stage in a failure of any agent: all of it falls on the last stage whose check failed,
    or on the last stage of all where every check passed; equal shares where nothing was checked."""
    if not trajectory.checks:
        return (1 / len(stages),) * len(stages)
    failed = [stage for stage in stages if trajectory.checks.get(stage) is False]
    guilty = failed[-1] if failed else stages[-1]
    return tuple(float(stage == guilty) for stage in stages)
