"""What a preflight looks at: a configuration, its evaluator, and the search that is to run on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nograd.agent.evaluator import AgentEvaluator
from nograd.preflight.finding import Finding
from nograd.run.config import RunConfig
from nograd.run.evaluators import build_evaluator
from nograd.run.loop import search_settings
from nograd.search.es import SearchSettings
from nograd.search.evaluation import Evaluator


@dataclass(frozen=True, eq=False)
class Setting:
    """facts, machine: what the results depend on beyond the configuration, and what it runs on (see
    `run.evaluators.Built`)."""

    config: RunConfig
    evaluator: Evaluator
    settings: SearchSettings
    facts: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)

    @property
    def agent(self) -> AgentEvaluator | None:
        """The evaluator where it asks a language model, else None."""
        return self.evaluator if isinstance(self.evaluator, AgentEvaluator) else None


def build_setting(config: RunConfig) -> Setting:
    """Load everything that the configuration names. Raises NogradError with what to change."""
    built = build_evaluator(config)
    return Setting(config, built.evaluator, search_settings(config, built.evaluator), built.facts, built.machine)


def left_out(detector: str, setting: Setting) -> Finding:
    """Says that a detector does not apply, for it needs a language model to look at."""
    name = setting.config.evaluator
    return Finding(detector, None, "ok", f"left out: the evaluator {name!r} asks no language model")
