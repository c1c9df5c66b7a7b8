"""Lockstep simulation against the run loop, for every scheme; and what pairing by seed promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nograd.errors import ConfigError
from nograd.run.config_source import load_config
from nograd.run.evaluators import build_evaluator
from nograd.run.load import load_run
from nograd.run.loop import run
from nograd.search.arms import SCHEMES
from nograd.synthetic import REGIMES, simulate

SEEDS = (1, 2, 3)
EXTRA = ("hard_noisy:q=0.25,floor=1", "soft:floor=1,ipw=true", "burst:module=caller,spread=true")


def example(scheme: str) -> str:
    return f"{scheme}:module=caller" if "module" in SCHEMES[scheme].options else scheme


@pytest.mark.parametrize("arm", [*(example(scheme) for scheme in SCHEMES), *EXTRA])
def test_lockstep_equals_the_run_loop(arm: str, tmp_path: Path) -> None:
    regime = REGIMES["nonstationary_wide"]
    curves = simulate(regime, arm, SEEDS, generations=33)
    for row, seed in enumerate(SEEDS[:2]):
        config = load_config(
            None,
            [
                "evaluator=synthetic",
                f"synthetic.regime={regime.name}",
                f"search.pairs={regime.pairs}",
                "search.generations=33",
                f"search.arm={arm}",
                f"seed={seed}",
            ],
        )
        built = build_evaluator(config)
        run(config, built.evaluator, tmp_path / str(seed), facts=built.facts)
        record = load_run(tmp_path / str(seed))
        assert [line.success for line in record.generations] == curves.success[row].tolist()
        assert [list(line.allocation) for line in record.generations] == curves.pairs[row].tolist()
        assert record.generations[-1].credit_after == tuple(curves.states[row].credit.tolist())


def test_arms_of_a_seed_start_alike_and_differ_later() -> None:
    regime = REGIMES["stationary_tight"]
    curves = [simulate(regime, arm, SEEDS, generations=12).success for arm in ("uniform", "oracle", "random")]
    for other in curves[1:]:
        np.testing.assert_array_equal(other[:, 0], curves[0][:, 0])
        assert (other != curves[0]).any()


def test_oracle_feeds_the_bottleneck_alone() -> None:
    regime = REGIMES["nonstationary_tight"]
    pairs = simulate(regime, "oracle", SEEDS, generations=65).pairs
    expected = np.zeros_like(pairs)
    for generation in range(65):
        expected[:, generation, regime.bottleneck(generation)] = regime.pairs
    np.testing.assert_array_equal(pairs, expected)


def test_a_floor_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="lower the floor to 1"):
        simulate(REGIMES["stationary_tight"], "hard:floor=2", SEEDS)


def test_an_unknown_regime_is_refused_before_the_run() -> None:
    with pytest.raises(ConfigError, match="unknown regime 'moving'"):
        build_evaluator(load_config(None, ["evaluator=synthetic", "synthetic.regime=moving"]))
