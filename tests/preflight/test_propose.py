"""The search over c and σ: up from inert, down from wrecked, nothing where all is well."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_setting import brief, tiny_setting

from nograd.agent.scheduler import Scheduler
from nograd.errors import ConfigError
from nograd.preflight.probe import probe
from nograd.preflight.propose import LONGEST, RATIO, best, climb, propose
from nograd.preflight.rung import Effect, Rung, rung
from nograd.preflight.setting import build_setting
from nograd.run.config_source import load_config
from tiny_models import save_tiny_chat, tiny_scheduler

STAGES = ("planner", "synthesizer")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Scheduler:
    return tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny"), STAGES)


def world(low: float, high: float) -> list[Rung]:
    """A climb where perturbations below `low` are weak and those above `high` strong."""

    def look(factor: float) -> Rung:
        return Rung(factor, (Effect(float(factor >= low), 0.0, -float(factor > high) * 5, 0.0),))

    return list(climb(look))


@given(st.floats(-4.5, 4.5), st.floats(0.0, 3.0))
@settings(deadline=None)
def test_a_climb_ends_in_a_healthy_band(position: float, width: float) -> None:
    """Wherever a band at least as wide as a rung lies within reach, it is found; a narrower one, or none, ends
    on the side of caution."""
    low = RATIO**position
    high = low * RATIO**width
    rungs = world(low, high)
    chosen = best(tuple(rungs))
    assert rungs[0].factor == 1
    assert len(rungs) <= LONGEST + 1
    if width >= 1:
        assert low <= chosen.factor <= high
        assert all(r.state != "healthy" for r in rungs[:-1]), "no further than it has to"
    assert chosen.factor <= high


def test_a_climb_that_finds_nothing() -> None:
    assert best(tuple(world(1e9, 1e10))).factor == RATIO ** (LONGEST - 1)
    assert best(tuple(world(1e-10, 1e-9))).factor == RATIO ** -(LONGEST - 1)


def test_scaling_theta_is_scaling_sigma(scheduler: Scheduler) -> None:
    plain = probe(tiny_setting(scheduler, brief, settings=("search.sigma=0.25",)), pairs=2, tasks=2)
    scaled = probe(tiny_setting(scheduler, brief, settings=("search.sigma=1.0",)), pairs=2, tasks=2)
    assert str(rung(plain, 4.0).effects) == str(rung(scaled, 1.0).effects)
    assert str(rung(plain, 1.0).effects) != str(rung(scaled, 1.0).effects)


def test_nothing_changes_where_all_is_well(scheduler: Scheduler) -> None:
    setting = tiny_setting(scheduler, brief, settings=("search.sigma=1.0",))
    proposed = propose(setting, probe(setting, pairs=2, tasks=2))
    assert (proposed.injection, proposed.sigma) == (1.0, 1.0)
    assert (proposed.finding.verdict, proposed.finding.advice) == ("ok", "")
    assert len(proposed.rungs) == len(proposed.strides) == 1


def test_inert_perturbations_grow(scheduler: Scheduler) -> None:
    setting = tiny_setting(scheduler, brief, settings=("search.sigma=0.002",))
    proposed = propose(setting, probe(setting, pairs=2, tasks=2))
    assert proposed.rungs[0].state == "weak"
    product = proposed.injection * proposed.sigma
    assert product >= 0.002 * RATIO
    chosen = best(proposed.rungs)
    assert product == pytest.approx(0.002 * chosen.factor, rel=0.01)
    assert proposed.injection == pytest.approx(proposed.strides[-1].factor, rel=0.01)
    assert proposed.strides[-1].safe


def test_an_injection_that_the_clip_cannot_hold_shrinks(scheduler: Scheduler) -> None:
    """The perturbations stay as large as they were."""
    setting = tiny_setting(scheduler, brief, settings=("search.sigma=3.0", "search.clip=50.0"))
    proposed = propose(setting, probe(setting, tasks=3))
    assert proposed.injection < 1
    assert proposed.injection * proposed.sigma == pytest.approx(3.0, rel=0.02)
    assert [stride.safe for stride in proposed.strides] == [False] * (len(proposed.strides) - 1) + [True]
    assert f"subspace.injection={proposed.injection:g}" in proposed.finding.advice


def test_the_state_of_a_rung() -> None:
    weak, fine, strong = (Effect(f, f, g, 0.0) for f, g in ((0.0, 0.0), (1.0, math.nan), (1.0, -1.0)))
    assert [Rung(1, e).state for e in ((fine, fine), (fine, weak), (weak, strong))] == ["healthy", "weak", "strong"]
    unasked = Effect(math.nan, math.nan, math.nan, math.nan)
    assert Rung(1, (unasked, fine)).state == "healthy", "a stage that was not asked says nothing"


def test_without_a_language_model_there_is_no_injection() -> None:
    setting = build_setting(load_config(None, ["evaluator=synthetic"]))
    with pytest.raises(ConfigError, match="'synthetic' has no injection strength"):
        propose(setting, probe(setting))
