"""What the environment verifies of simulated rollouts: reward and blame by the agent's own rules (DESIGN §4).

`worked`, bool [..., tasks, modules], says which modules would do their part; a rollout goes through them in
order and succeeds if all do. A bad plan shows only as a wrong tool: the selector is blamed for it, and the
planner never, as in the paper's agent (§3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.synthetic.regimes import MODULES

SELECTOR, CALLER = MODULES.index("selector"), MODULES.index("caller")


@dataclass(frozen=True)
class Rewards:
    """reward = 1[success] + tool·1[tool correct] + call·1[call ok]; batch: rollouts per candidate."""

    batch: int = 16
    tool: float = 0.15
    call: float = 0.15


TASK_REWARD = Rewards()


@dataclass(frozen=True, eq=False)
class Scores:
    """Batch means, float64 [...]."""

    success: NDArray[np.float64]
    reward: NDArray[np.float64]
    tool_accuracy: NDArray[np.float64]
    call_ok: NDArray[np.float64]


def score(worked: NDArray[np.bool_], rewards: Rewards) -> Scores:
    """Batch means of every candidate."""
    success = worked.all(axis=-1).mean(axis=-1)
    tool = worked[..., : SELECTOR + 1].all(axis=-1).mean(axis=-1)
    call = worked[..., : CALLER + 1].all(axis=-1).mean(axis=-1)
    return Scores(success, success + rewards.tool * tool + rewards.call * call, tool, call)


def blame(worked: NDArray[np.bool_]) -> tuple[float, ...] | None:
    """Mean blame of one candidate's failed rollouts, a share per module; None if none failed.

    worked: bool [tasks, modules].
    """
    failed = worked[~worked.all(axis=-1)]
    if not len(failed):
        return None
    first = np.maximum(failed.argmin(axis=-1), SELECTOR)
    return tuple((np.bincount(first, minlength=len(MODULES)) / len(failed)).tolist())
