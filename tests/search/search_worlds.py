"""Small exact worlds for the search tests: fitness is a known function of theta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.search.arms import SCHEMES, Arm, parse_arm
from nograd.search.es import Proposal, SearchSettings, SearchState, Update, ask, init, tell
from nograd.search.evaluation import Evaluation

MODULES = ("planner", "selector", "caller", "synthesizer")
BLAME = (0.0, 0.1, 0.2, 0.7)
Fitness = Callable[[NDArray[np.float32]], float]


def bowl(theta: NDArray[np.float32]) -> float:
    """A quadratic with its peak at 1 in every coefficient; the modules matter unequally."""
    weights = np.arange(1, len(theta) + 1)
    return -float((weights * ((theta.astype(np.float64) - 1) ** 2).sum(axis=1)).sum()) / 10


def settings_for(arm: str | Arm = "uniform", **changes: Any) -> SearchSettings:
    chosen: dict[str, Any] = {
        "modules": MODULES,
        "dim": 6,
        "seed": 3,
        "arm": parse_arm(arm) if isinstance(arm, str) else arm,
    } | changes
    return SearchSettings(**chosen)


def example_arm(scheme: str, floor: int = 0, module: str = MODULES[-1]) -> Arm:
    """An arm of the scheme with what it needs and nothing else."""
    named = "module" in SCHEMES[scheme].options
    return Arm(scheme, floor=floor, module=module if named else None)


def evaluate(
    thetas: NDArray[np.float32], fitness: Fitness = bowl, blame: tuple[float, ...] | None = BLAME
) -> list[Evaluation]:
    return [Evaluation(fitness(theta), 0.5, 0.5, blame) for theta in thetas]


def generation(
    settings: SearchSettings, state: SearchState, fitness: Fitness = bowl
) -> tuple[SearchState, Proposal, Update]:
    proposal = ask(settings, state, bottleneck=len(settings.modules) - 1)
    blame = BLAME if len(settings.modules) == len(BLAME) else None
    after, update = tell(settings, state, proposal, evaluate(proposal.thetas, fitness, blame))
    return after, proposal, update


def run(
    settings: SearchSettings, generations: int | None = None, fitness: Fitness = bowl
) -> list[tuple[SearchState, Proposal, Update]]:
    """State after, proposal and update of every generation."""
    history = []
    state = init(settings)
    for _ in range(generations or settings.generations):
        state, proposal, update = generation(settings, state, fitness)
        history.append((state, proposal, update))
    return history


def thetas(history: list[tuple[SearchState, Proposal, Update]]) -> NDArray[np.float32]:
    return np.stack([state.theta for state, _, _ in history])


def pairs(history: list[tuple[SearchState, Proposal, Update]]) -> NDArray[np.int64]:
    return np.stack([proposal.allocation.pairs for _, proposal, _ in history])
