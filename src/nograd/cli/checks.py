"""What can be known to be wrong with a configuration before a model is loaded."""

from __future__ import annotations

from nograd.errors import ConfigError, unknown_name
from nograd.run.config import RunConfig
from nograd.run.evaluators import BUILDERS
from nograd.search.arms import parse_arm
from nograd.search.settings import SearchSettings
from nograd.tasks.registry import FAMILIES

FOUR_STAGES = ("planner", "selector", "caller", "synthesizer")


def check_names(config: RunConfig) -> None:
    """Raise ConfigError for an unknown evaluator, task family or module, or a budget or batch that does not
    fit."""
    if config.evaluator == "own":
        raise ConfigError(
            "this run tunes an agent that lives in a Python program; go on with it there: "
            "nograd.tune(…, resume=True)"
        )
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
