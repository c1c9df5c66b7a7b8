"""Many runs of one arm in lockstep: the search's own ask and tell per seed, one evaluation for all seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.search.arms import parse_arm
from nograd.search.es import SearchSettings, SearchState, ask, init, tell
from nograd.synthetic.landscape import CALIBRATED, Landscape
from nograd.synthetic.regimes import MODULES, Regime
from nograd.synthetic.world import World

GENERATIONS = 120


@dataclass(frozen=True, eq=False)
class Curves:
    """One arm under several seeds. success: of the center, float64 [seeds, generations]; pairs: int64 [seeds,
    generations, modules]; states: after the last generation, one per seed."""

    arm: str
    seeds: tuple[int, ...]
    success: NDArray[np.float64]
    pairs: NDArray[np.int64]
    states: tuple[SearchState, ...]

    @property
    def auc(self) -> dict[int, float]:
        """Mean center success by seed."""
        return dict(zip(self.seeds, self.success.mean(axis=1).tolist(), strict=True))


def simulate(
    regime: Regime,
    arm: str,
    seeds: Sequence[int],
    generations: int = GENERATIONS,
    landscape: Landscape = CALIBRATED,
) -> Curves:
    """Run an arm, e.g. "hard" or "random:floor=1", under every seed with the paper's step rule.

    Raises ConfigError for an arm that does not exist or does not fit the regime's pairs.
    """
    settings = [_settings(regime, arm, seed, generations) for seed in seeds]
    world = World(regime, seeds, landscape)
    states = [init(setting) for setting in settings]
    success = np.empty((len(settings), generations))
    pairs = np.empty((len(settings), generations, len(MODULES)), np.int64)
    for generation in range(generations):
        bottleneck = regime.bottleneck(generation)
        proposals = [ask(*run, bottleneck) for run in zip(settings, states, strict=True)]
        evaluations = world.evaluate(generation, np.stack([proposal.thetas for proposal in proposals]))
        success[:, generation] = [center.success for center, *_ in evaluations]
        pairs[:, generation] = [proposal.allocation.pairs for proposal in proposals]
        runs = zip(settings, states, proposals, evaluations, strict=True)
        states = [tell(*run)[0] for run in runs]
    return Curves(arm, tuple(seeds), success, pairs, tuple(states))


def _settings(regime: Regime, arm: str, seed: int, generations: int) -> SearchSettings:
    return SearchSettings(
        modules=MODULES,
        dim=regime.dim,
        seed=seed,
        generations=generations,
        pairs=regime.pairs,
        arm=parse_arm(arm),
    )
