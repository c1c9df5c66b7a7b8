"""Two runs side by side: what was asked of them, how their curves differ, where they part, and how far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.run.changed_trajectories import ChangedTrajectories, changed_trajectories
from nograd.run.config import results_bearing
from nograd.run.differences import Differences, differences
from nograd.run.divergence import Divergence, divergence, same_generation
from nograd.run.load import RunRecord
from nograd.run.resume import changes

MEASURES = ("success", "reward", "fitness")
Changes = Mapping[str, tuple[Any, Any]]
"""Dotted key → value in a and in b; None stands for one that is absent."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs a and b; every difference is b less a, over the generations that both have.

    settings: those that results depend on and that differ. execution: the others. facts: differences of the
    model, its weights and the tasks. surroundings: of versions, machine and source tree.
    shared: how many generations both have. divergence: see `run.divergence`.
    distance: float64 [shared + 1, modules], ‖θ_b − θ_a‖ before every generation and after the last; None where
    the runs do not have the same modules and coefficients per module.
    trajectories: "first", "newest" → what changed, None where they cannot be compared.
    identical: whether all results of the shared generations are the same bits.
    """

    a: RunRecord
    b: RunRecord
    settings: Changes
    execution: Changes
    facts: Changes
    surroundings: Changes
    shared: int
    differences: Mapping[str, Differences]
    divergence: Divergence
    distance: NDArray[np.float64] | None
    trajectories: Mapping[str, ChangedTrajectories | None]
    identical: bool


def compare_runs(a: RunRecord, b: RunRecord) -> Comparison:
    """Compare two runs, finished or not, of any evaluator."""
    shared = min(len(a.generations), len(b.generations))
    trajectories = {which: changed_trajectories(a, b, which) for which in ("first", "newest")}
    one, other = a.environment, b.environment
    return Comparison(
        a=a,
        b=b,
        settings=_changes(results_bearing(a.config), results_bearing(b.config)),
        execution=_changes(a.config.execution.model_dump(), b.config.execution.model_dump()),
        facts=_changes(one["identity"]["facts"], other["identity"]["facts"]),
        surroundings=_changes(_surroundings(one), _surroundings(other)),
        shared=shared,
        differences={name: differences(_curve(a, name), _curve(b, name)) for name in MEASURES},
        divergence=divergence(a, b),
        distance=_distance(a, b, shared),
        trajectories=trajectories,
        identical=_identical(a, b, shared) and not any(found and found.changed for found in trajectories.values()),
    )


def _changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> Changes:
    return {key: (one, other) for key, (one, other) in changes(a, b).items()}


def _surroundings(environment: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: environment[kind] for kind in ("versions", "machine", "git")}


def _curve(run: RunRecord, measure: str) -> NDArray[np.float64]:
    return run.array(measure).astype(np.float64)


def _distance(a: RunRecord, b: RunRecord, shared: int) -> NDArray[np.float64] | None:
    if a.modules != b.modules or a.theta.shape[1:] != b.theta.shape[1:]:
        return None
    apart = b.theta[: shared + 1].astype(np.float64) - a.theta[: shared + 1]
    return np.asarray(np.linalg.norm(apart, axis=2))


def _identical(a: RunRecord, b: RunRecord, shared: int) -> bool:
    pairs = zip(a.generations, b.generations, strict=False)
    return shared > 0 and all(same_generation(one, other) for one, other in pairs)
