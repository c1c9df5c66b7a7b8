"""Reward and blame of a rollout, as DESIGN §4 writes them."""

from __future__ import annotations

import itertools
import json

import pytest

from nograd.agent.four_stage import STAGES
from nograd.agent.trajectory import RewardWeights, Step, Trajectory, blame, blame_last_failed


@pytest.mark.parametrize("attempts", [1, 2, 3])
@pytest.mark.parametrize(("success", "tool", "call"), list(itertools.product([True, False], repeat=3)))
def test_reward(success: bool, tool: bool, call: bool, attempts: int) -> None:
    trajectory = Trajectory("", checks={"selector": tool, "caller": call}, attempts=attempts)
    expected = 1.0 * success + 0.15 * tool + 0.15 * call - 0.03 * (attempts - 1)
    assert RewardWeights()(trajectory, success) == pytest.approx(expected)
    assert RewardWeights(0.5, 0.25, 0.1)(trajectory, success) == pytest.approx(
        success + 0.5 * tool + 0.25 * call - 0.1 * (attempts - 1)
    )


def test_reward_of_an_agent_without_checks() -> None:
    assert RewardWeights()(Trajectory(""), True) == 1.0


@pytest.mark.parametrize(
    ("tool", "call", "guilty"),
    [
        (False, False, "selector"),
        (False, True, "selector"),
        (True, False, "caller"),
        (True, True, "synthesizer"),
    ],
)
def test_blame(tool: bool, call: bool, guilty: str) -> None:
    shares = blame(Trajectory("", checks={"selector": tool, "caller": call}), STAGES)
    assert shares == tuple(float(stage == guilty) for stage in STAGES)


@pytest.mark.parametrize(
    ("checks", "shares"),
    [
        ({"a": False, "b": True}, (1, 0, 0)),
        ({"a": False, "b": False}, (0, 1, 0)),
        ({"b": False, "a": False}, (0, 1, 0)),
        ({"a": True, "b": True}, (0, 0, 1)),
        ({}, (1 / 3, 1 / 3, 1 / 3)),
    ],
)
def test_blame_of_any_agent(checks: dict[str, bool], shares: tuple[float, ...]) -> None:
    """The last stage, in the order of the work, whose check failed."""
    assert blame_last_failed(Trajectory("", checks=checks), ("a", "b", "c")) == shares


def test_record_is_json() -> None:
    trajectory = Trajectory("4", (Step("caller", "{}", "error: no"),), {"caller": False}, 2, {"tool": -0.5})
    record = trajectory.record("t-1", True)
    assert json.loads(json.dumps(record)) == record
    assert record == {
        "task": "t-1",
        "answer": "4",
        "success": True,
        "checks": {"caller": False},
        "attempts": 2,
        "steps": [{"stage": "caller", "text": "{}", "outcome": "error: no"}],
    }
