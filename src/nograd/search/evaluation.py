"""What the search sees of the world: candidates in, evaluations out. It knows nothing of language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Evaluation:
    """One candidate on one generation's task batch.

    fitness: batch mean of reward + w · mean gold log-probability (DESIGN §4); may be non-finite, then its pair
        is dropped.
    success, reward: batch means; success in [0, 1].
    blame: mean blame over the failed trajectories, one share per module, or None if nothing failed.
    metrics: further batch means, e.g. tool_accuracy, call_ok, relay.
    """

    fitness: float
    success: float
    reward: float
    blame: tuple[float, ...] | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GenerationResult:
    """All evaluations of one generation, the center first, and what they cost.

    counts: integers such as requests_asked, requests_computed, tokens_prefilled, tokens_decoded.
    trajectories: JSON-able records of the center's trajectories, in task order; may be empty.
    """

    evaluations: tuple[Evaluation, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    trajectories: tuple[Mapping[str, Any], ...] = ()


class Evaluator(Protocol):
    """Turns candidates into evaluations. The LLM agent is one, the synthetic environment another."""

    @property
    def modules(self) -> Sequence[str]:
        """Names of the modules, in the order of theta's first axis."""
        ...

    @property
    def dim(self) -> int:
        """Coefficients per module (per-layer parameterisations flatten layers × dim)."""
        ...

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        """Evaluate thetas, float32 [candidates, modules, dim], on the task batch of this generation.

        Row 0 is the center. A pure function of (generation, thetas) and the evaluator's own seed."""
        ...

    def bottleneck(self, generation: int) -> int | None:
        """Index of the true bottleneck module where it is known (synthetic environment), else None."""
        ...
