"""From a configuration to an evaluator: the extension point between the run loop and what is tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from nograd.errors import unknown_name
from nograd.plugins import Registry
from nograd.run.config import RunConfig
from nograd.search.evaluation import Evaluator


@dataclass(frozen=True)
class Built:
    """An evaluator ready to run. facts: what its results depend on beyond the configuration, JSON-able
    (fingerprint of the weights, resolved revision and dtype, hash of the tasks). machine: what it runs on
    (resolved device and its name, threads). Both are handed to `run.loop.run`."""

    evaluator: Evaluator
    facts: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)


class EvaluatorBuilder(Protocol):
    """Builds an evaluator. Importing a builder must be cheap: heavy imports belong into the call."""

    def __call__(self, config: RunConfig) -> Built: ...


def _agent(config: RunConfig) -> Built:
    from nograd.run.build_agent import build_agent

    return build_agent(config)


def _synthetic(config: RunConfig) -> Built:
    from nograd.run.build_synthetic import build_synthetic

    return build_synthetic(config)


def _plugged(name: str, value: object) -> EvaluatorBuilder:
    if name in RESERVED or not callable(value):
        raise TypeError(f"it must be a function of the configuration, under another name than {', '.join(RESERVED)}")
    return cast("EvaluatorBuilder", value)


RESERVED = ("own", "black_box")
"""Evaluators that Python programs hand over themselves; no configuration builds them."""

_OWN: dict[str, EvaluatorBuilder] = {"agent": _agent, "synthetic": _synthetic}
BUILDERS = Registry("nograd.evaluators", _OWN, _plugged)
"""What `RunConfig.evaluator` may name."""


def build_evaluator(config: RunConfig, builders: Mapping[str, EvaluatorBuilder] = BUILDERS) -> Built:
    """The evaluator that the configuration names, or that its "module:function" makes. Raises ConfigError for
    an unknown name."""
    if ":" in config.evaluator:
        from nograd.run.own_evaluator import build_own

        return build_own(config)
    if config.evaluator not in builders:
        raise unknown_name("evaluator", config.evaluator, builders)
    return builders[config.evaluator](config)
