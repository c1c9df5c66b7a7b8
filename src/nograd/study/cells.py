"""The cells of a plan: one run per arm and seed, paired over the seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nograd.errors import ConfigError
from nograd.run.config import RunConfig
from nograd.run.config_source import make_config
from nograd.study.plan import Plan, Replay
from nograd.study.scaling import Scaling, changes, merged
from nograd.tasks.registry import FAMILIES


@dataclass(frozen=True)
class Cell:
    """One run of a sweep. folder: its place in the sweep directory."""

    label: str
    seed: int
    config: RunConfig

    @property
    def folder(self) -> Path:
        return Path(self.label) / f"seed-{self.seed:04d}"

    @property
    def name(self) -> str:
        """Its name in messages and records."""
        return self.folder.as_posix()


def cells(plan: Plan, scaling: Scaling | None = None) -> tuple[Cell, ...]:
    """All cells, seed by seed, so that a sweep that stops early has complete pairs. Raises ConfigError that
    names the arm whose settings cannot be used."""
    scaling = scaling or Scaling()
    if plan.replay is not None and (scaling.model is not None or scaling.generations is not None):
        raise ConfigError(
            f"a replay uses the model and the generations of the {plan.replay.source!r} sweep; leave out the "
            f"model and the generations, or scale that sweep"
        )
    return tuple(
        Cell(label, seed, arm_config(plan, label, seed, scaling))
        for seed in (scaling.seeds or plan.seeds)
        for label in plan.arms
    )


def arm_config(plan: Plan, label: str, seed: int, scaling: Scaling) -> RunConfig:
    """The configuration of one cell. Raises ConfigError that names the arm."""
    arm = plan.arms[label]
    own = merged(arm.settings, {"search": {"arm": arm.arm}, "seed": seed})
    values = merged(merged(plan.settings, own), changes(scaling))
    try:
        config = make_config(_on_family(values, plan.replay, scaling))
    except ConfigError as error:
        raise ConfigError(f"arm {label!r}: {error}") from error
    if plan.heldout is not None and config.evaluator != "agent":
        raise ConfigError(
            f"arm {label!r}: a plan with [heldout] evaluates the four-stage agent, but evaluator = "
            f"{config.evaluator!r}; leave the evaluator out, or take a plan without [heldout]"
        )
    return config


def rollouts(plan: Plan, scaling: Scaling | None = None) -> int:
    """Rollouts of the whole plan: what a sweep costs, in the unit that all arms share."""
    return sum(step_rollouts(plan, cell, cell_steps(plan, cell)) for cell in cells(plan, scaling))


def cell_steps(plan: Plan, cell: Cell) -> int:
    """Steps of one cell: generations, then the coefficients evaluated (in a replay, these only)."""
    if plan.replay is not None:
        return 1 + plan.replay.last
    generations = cell.config.search.generations
    return generations + (len(plan.heldout.after(generations)) if plan.heldout else 0)


def step_rollouts(plan: Plan, cell: Cell, steps: int) -> int:
    """Rollouts of the first so many steps: in a generation the center and the two sides of every pair, each on
    the whole batch; in an evaluation one candidate on all tasks of its family."""
    batch = cell.config.tasks.batch
    if plan.replay is not None:
        return steps * batch
    trained = min(steps, cell.config.search.generations)
    evaluated = (FAMILIES[plan.heldout.family].info.size or 0) if plan.heldout else 0
    return trained * (1 + 2 * cell.config.search.pairs) * batch + (steps - trained) * evaluated


def _on_family(values: Mapping[str, Any], replay: Replay | None, scaling: Scaling) -> Mapping[str, Any]:
    if replay is None:
        return values
    tasks = {"family": replay.family, "batch": scaling.batch or replay.batch}
    return merged(values, {"tasks": tasks})
