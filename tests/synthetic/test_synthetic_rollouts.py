"""Scores and blame against a plain reading of the rules, one rollout at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from nograd.synthetic.regimes import MODULES
from nograd.synthetic.rollouts import Rewards, blame, score

batches = hnp.arrays(np.bool_, st.tuples(st.integers(1, 20), st.just(len(MODULES))))


def one_rollout(row: NDArray[np.bool_]) -> tuple[bool, bool, bool, int | None]:
    """tool correct, call ok, success, whom to blame."""
    planned, selected, called, answered = row.tolist()
    tool = planned and selected
    call = tool and called
    success = call and answered
    blamed = None if success else (3 if call else 2 if tool else 1)
    return tool, call, success, blamed


@given(batches, st.floats(0, 1), st.floats(0, 1))
@settings(deadline=None)
def test_scores_and_blame_follow_the_rules(worked: NDArray[np.bool_], tool: float, call: float) -> None:
    rollouts = [one_rollout(row) for row in worked]
    scores = score(worked, Rewards(len(worked), tool, call))
    assert float(scores.tool_accuracy) == pytest.approx(np.mean([r[0] for r in rollouts]))
    assert float(scores.call_ok) == pytest.approx(np.mean([r[1] for r in rollouts]))
    assert float(scores.success) == pytest.approx(np.mean([r[2] for r in rollouts]))
    rewards = [r[2] + tool * r[0] + call * r[1] for r in rollouts]
    assert float(scores.reward) == pytest.approx(np.mean(rewards))

    blamed = [r[3] for r in rollouts if r[3] is not None]
    if not blamed:
        assert blame(worked) is None
    else:
        expected = [blamed.count(module) / len(blamed) for module in range(len(MODULES))]
        assert blame(worked) == pytest.approx(expected)


def test_the_planner_is_never_blamed() -> None:
    assert blame(np.zeros((5, 4), np.bool_)) == (0.0, 1.0, 0.0, 0.0)
