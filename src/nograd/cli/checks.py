"""What can be known to be wrong with a configuration before a model is loaded."""

from __future__ import annotations

from nograd.errors import ConfigError, unknown_name
from nograd.run.config import RunConfig
from nograd.run.evaluators import BUILDERS
from nograd.run.own_evaluator import find_maker
from nograd.search.arms import parse_arm
from nograd.search.settings import SearchSettings
from nograd.tasks.registry import FAMILIES

FOUR_STAGES = ("planner", "selector", "caller", "synthesizer")
IN_PROGRAMS = {"own": "nograd.tune", "black_box": "nograd.tune_black_box"}
"""Evaluators that no configuration can build → what built them."""


def check_names(config: RunConfig) -> None:
    """Raise ConfigError for an unknown evaluator, task family or module, or a budget or batch that does not
    fit."""
    if config.evaluator in IN_PROGRAMS:
        raise ConfigError(
            f"this run belongs to a Python program; go on with it there: "
            f"{IN_PROGRAMS[config.evaluator]}(…, resume=True)"
        )
    if ":" in config.evaluator:
        find_maker(config.evaluator)
        return
    if config.evaluator not in BUILDERS:
        raise unknown_name("evaluator", config.evaluator, BUILDERS)
    if config.evaluator == "agent":
        _check_tasks(config)
        _check_search(config)


def _check_tasks(config: RunConfig) -> None:
    entry = FAMILIES.get(config.tasks.family.replace("-", "_"))
    if entry is None:
        raise unknown_name("task family", config.tasks.family, FAMILIES)
    if config.tasks.batch > entry.info.size:
        raise ConfigError(
            f"tasks.batch = {config.tasks.batch}, but {entry.info.name} has {entry.info.size} tasks; "
            f"ask for at most that many"
        )


def _check_search(config: RunConfig) -> None:
    search = config.search
    SearchSettings(
        modules=FOUR_STAGES,
        dim=config.subspace.dim,
        seed=config.seed,
        generations=search.generations,
        pairs=search.pairs,
        arm=parse_arm(search.arm),
    )
