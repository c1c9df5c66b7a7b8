"""What a preflight is about: what must be the same for it to speak of another run, too."""

from __future__ import annotations

from typing import Any

from nograd.run.config import RunConfig, results_bearing
from nograd.run.task_family import task_family

FREE = (("seed",), ("search", "arm"), ("search", "generations"))
"""Settings that may differ: the findings are about the model, the tasks and the single step."""


def same_subject(one: RunConfig, other: RunConfig) -> bool:
    """Whether two configurations differ in nothing that results depend on but what may differ."""
    return _fixed(one) == _fixed(other)


def identity_of(config: RunConfig) -> dict[str, str]:
    """What else must be the same: fingerprint of the weights, kind of device, hashes of the tasks; empty where no
    language model is asked. Reads no weights that were read before."""
    if config.evaluator != "agent":
        return {}
    from nograd.agent.four_stage import STAGES
    from nograd.run.build_agent import engine_spec, tasks_hash

    spec = engine_spec(config, len(STAGES))
    return {"fingerprint": spec.weights, "tasks": tasks_hash(task_family(config.tasks)), "device": spec.device}


def _fixed(config: RunConfig) -> dict[str, Any]:
    values = results_bearing(config)
    for *sections, name in FREE:
        table = values
        for section in sections:
            table = table[section]
        del table[name]
    return values
