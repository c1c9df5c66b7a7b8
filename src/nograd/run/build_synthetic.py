"""From a configuration to the synthetic environment's evaluator."""

from __future__ import annotations

from dataclasses import asdict

from nograd.run.config import RunConfig
from nograd.run.evaluators import Built
from nograd.synthetic import CALIBRATED, Rewards, SyntheticEvaluator, find_regime


def build_synthetic(config: RunConfig) -> Built:
    """The environment of the configured regime and seed. Raises ConfigError for an unknown regime."""
    regime = find_regime(config.synthetic.regime)
    rewards = Rewards(config.tasks.batch, config.reward.tool, config.reward.call)
    facts = {"regime": asdict(regime), "landscape": asdict(CALIBRATED)}
    return Built(SyntheticEvaluator(regime, config.seed, CALIBRATED, rewards), facts)
