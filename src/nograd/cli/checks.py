"""What can be known to be wrong with a configuration before a model is loaded."""

from __future__ import annotations

from nograd.errors import ConfigError, unknown_name
from nograd.run.config import RunConfig
from nograd.run.evaluators import BUILDERS
from nograd.run.loop import module_clips
from nograd.run.own_evaluator import find_maker
from nograd.run.task_family import own_files, task_family
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
    named = own_files(config.tasks).get("path", entry.info.name)
    size = len(task_family(config.tasks).tasks) if entry.info.size is None else entry.info.size
    if config.tasks.batch > size:
        raise ConfigError(
            f"tasks.batch = {config.tasks.batch}, but {named} has {size} tasks; ask for at most that many"
        )


def _check_search(config: RunConfig) -> None:
    search = config.search
    if parse_arm(search.arm).scheme == "oracle":
        raise ConfigError(
            f"arm {search.arm!r} needs a known bottleneck, which only the synthetic environment has; choose "
            f"another arm, or set evaluator=synthetic"
        )
    SearchSettings(
        modules=FOUR_STAGES,
        dim=config.subspace.dim,
        seed=config.seed,
        generations=search.generations,
        pairs=search.pairs,
        clip=module_clips(search.clip, FOUR_STAGES),
        arm=parse_arm(search.arm),
    )
