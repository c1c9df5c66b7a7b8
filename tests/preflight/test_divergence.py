"""Divergence: what counts as wrecked, and the settings that lead there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_setting import brief, tiny_setting

from nograd.agent.scheduler import Scheduler
from nograd.llm.requests import Completion
from nograd.preflight.behaviour import Behaviour, loops
from nograd.preflight.divergence import directions, divergence
from nograd.preflight.finding import Finding
from nograd.preflight.probe import probe
from nograd.preflight.setting import Setting, build_setting
from nograd.run.config_source import load_config
from nograd.search.es import ask, init, tell
from tiny_models import save_tiny_chat, tiny_scheduler

STAGES = ("planner", "synthesizer")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Scheduler:
    return tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny"), STAGES)


def found(setting: Setting) -> dict[str | None, Finding]:
    return {finding.module: finding for finding in divergence(setting, probe(setting, pairs=2, tasks=2))}


def synthetic(*more: str) -> Setting:
    return build_setting(load_config(None, ["evaluator=synthetic", *more]))


def test_a_clip_that_lets_destruction_through() -> None:
    assert [f.verdict for f in found(synthetic("search.clip=0.5")).values()] == ["ok"]
    wrecked = found(synthetic("search.clip=30.0"))
    assert wrecked[None].verdict == "failed"
    assert "search.clip" in wrecked[None].advice
    assert len(wrecked) == 5, "the modules are looked at one by one"
    assert float(wrecked[None].figures["success_clip"] or 0) < float(wrecked[None].figures["success_center"] or 0) / 2


def test_a_third_of_what_destroys_is_a_warning() -> None:
    """The clip is set so that one step is survived and three are not."""
    setting = synthetic("search.clip=0.5")
    seen = probe(setting)
    step = directions(seen)
    success = [
        setting.evaluator.evaluate(1, (length * step)[None].astype(np.float32)).evaluations[0].success
        for length in (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30)
    ]
    lengths = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30)
    last = max(length for length, s in zip(lengths, success, strict=True) if s > success[0] / 2)
    (whole, *_) = divergence(synthetic(f"search.clip={float(last)}"), seen)
    assert whole.verdict == "warning"
    assert whole.sentence.startswith("three times")


def test_without_a_clip_nothing_bounds_a_step(scheduler: Scheduler) -> None:
    finding = found(tiny_setting(scheduler, brief, settings=("search.clip=inf",)))[None]
    assert (finding.verdict, finding.figures["clip"]) == ("warning", None)
    assert "search.clip" in finding.advice


def test_a_clip_that_truncates_every_step(scheduler: Scheduler) -> None:
    finding = found(tiny_setting(scheduler, brief, settings=("search.clip=1e-6",)))[None]
    assert finding.verdict == "warning"
    assert "raise search.clip" in finding.advice
    assert found(tiny_setting(scheduler, brief))[None].verdict == "ok"


def test_long_steps_wreck_a_language_model(scheduler: Scheduler) -> None:
    finding = found(tiny_setting(scheduler, brief, settings=("search.clip=50.0",)))[None]
    assert finding.verdict == "failed"


def test_the_raw_step_is_that_of_the_run(scheduler: Scheduler) -> None:
    """Under any arm; here one that gives every pair to one module."""
    setting = tiny_setting(scheduler, brief, settings=("search.arm=hard",))
    seen = probe(setting, pairs=2, tasks=3)
    proposal = ask(setting.settings, init(setting.settings))
    result = setting.evaluator.evaluate(0, proposal.thetas)
    _, update = tell(setting.settings, init(setting.settings), proposal, result.evaluations)
    np.testing.assert_array_equal(seen.first.raw_norm, update.raw_norm)
    assert (update.raw_norm > 0).tolist() == [True, False]


BEFORE = Behaviour(success=0.5, gold=-1.0, parsed=0.8, looping=0.1)


@pytest.mark.parametrize(
    ("after", "wrecked"),
    [
        (BEFORE, False),
        (Behaviour(0.0, -1.5, 0.7, 0.2), False),
        (Behaviour(0.25, -2.1, 0.8, 0.1), True),
        (Behaviour(0.0, -1.0, 0.4, 0.1), True),
        (Behaviour(0.0, -1.0, math.nan, 0.1), True),
        (Behaviour(0.0, -1.0, 0.8, 0.4), True),
        (Behaviour(0.4, -9.0, 0.0, 1.0), False),
    ],
)
def test_wrecked_is_success_lost_and_a_sign_of_why(after: Behaviour, wrecked: bool) -> None:
    assert after.wrecked(BEFORE) is wrecked


def test_a_hopeless_model_is_not_wrecked_by_being_hopeless() -> None:
    hopeless = Behaviour(0.0, -5.0, 0.0, 0.5)
    assert not hopeless.wrecked(hopeless)
    assert not Behaviour(0.0).wrecked(Behaviour(0.0))
    assert Behaviour(0.2).wrecked(Behaviour(0.5)), "of a black box, success decides"


@given(st.lists(st.integers(0, 9), max_size=20), st.lists(st.integers(0, 9), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_loop_is_found_whatever_comes_before(start: list[int], gram: list[int]) -> None:
    tokens = tuple(start + gram * (3 + len(start)))
    assert loops(Completion(tokens, "length"))
    assert not loops(Completion(tokens, "stop")), "it ended by itself"


@given(st.integers(0, 3), st.integers(3, 40))
@settings(deadline=None)
def test_no_loop_in_tokens_that_all_differ(first: int, count: int) -> None:
    assert not loops(Completion(tuple(range(first, first + count)), "length"))
    assert not loops(Completion((*range(first, first + count), 99, 99), "length")), "twice is not a loop"
