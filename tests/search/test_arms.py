"""Arms: text and dataclass are the same thing, and what does not fit is refused."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.errors import ConfigError
from nograd.search.arms import COMMON_OPTIONS, OPTIONS, SCHEMES, Arm, allowed_options, parse_arm
from nograd.search.schemes import ROUTES

NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name == name.strip() and "," not in name)
VALUES = {
    "floor": st.integers(0, 9),
    "ipw": st.booleans(),
    "q": st.floats(0, 1),
    "module": NAMES,
    "catch_up": st.booleans(),
    "clip_scale": st.floats(0, 1e6, exclude_min=True),
    "spread": st.booleans(),
    "explore": st.floats(0, 1, exclude_min=True),
}


@st.composite
def arms(draw: st.DrawFn) -> Arm:
    scheme = draw(st.sampled_from(sorted(SCHEMES)))
    chosen: dict[str, Any] = {name: draw(VALUES[name]) for name in allowed_options(scheme)}
    if chosen.get("catch_up"):
        chosen["spread"] = False
    return Arm(scheme, **chosen)


@given(arms())
@settings(deadline=None)
def test_label_round_trips(arm: Arm) -> None:
    assert parse_arm(arm.label) == arm
    assert parse_arm(arm.label).label == arm.label


@pytest.mark.parametrize(
    ("text", "arm"),
    [
        ("uniform", Arm("uniform")),
        ("soft_sigma", Arm("soft_sigma")),
        ("hard_noisy:q=0.5,floor=1", Arm("hard_noisy", q=0.5, floor=1)),
        ("hard_noisy", Arm("hard_noisy", q=0.5)),
        ("lock:module=caller", Arm("lock", module="caller")),
        (
            "burst:module=synthesizer,catch_up=true",
            Arm("burst", module="synthesizer", catch_up=True),
        ),
        (" soft : floor = 1 , ipw = True ", Arm("soft", floor=1, ipw=True)),
    ],
)
def test_examples(text: str, arm: Arm) -> None:
    assert parse_arm(text) == arm


def test_canonical_labels_are_short_and_say_what_matters() -> None:
    assert Arm("uniform").label == "uniform"
    assert Arm("hard_noisy").label == "hard_noisy:q=0.5"
    assert Arm("hard_noisy", q=1.0, floor=1).label == "hard_noisy:q=1,floor=1"
    assert (
        Arm("burst", module="a", clip_scale=4.0, catch_up=True).label
        == "burst:module=a,catch_up=true,clip_scale=4"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("unifrom", "did you mean 'uniform'"),
        ("", "known: bandit"),
        ("soft:q=0.5", "it takes: floor, ipw"),
        ("uniform:spread=false", "no option 'spread'"),
        ("hard_noisy:p=1", "it takes: q, floor, ipw"),
        ("hard_noisy:q=half", "'q' is a number, got 'half'"),
        ("hard_noisy:q", "write each option once"),
        ("hard_noisy:q=0.1,q=0.2", "write each option once"),
        ("hard_noisy:q=1.5", "between 0 and 1, got 1.5"),
        ("hard_noisy:q=nan", "got nan"),
        ("uniform:floor=1.5", "'floor' is an integer, got '1.5'"),
        ("uniform:floor=-1", "0 or more, got -1"),
        ("uniform:ipw=yes", "'ipw' is true or false, got 'yes'"),
        ("uniform:floor=1,", "no option ''"),
        ("lock", "needs module=NAME"),
        ("burst:module=", "needs module=NAME"),
        ("burst:module=a,clip_scale=0", "positive factor, got 0.0"),
        ("burst:module=a,clip_scale=inf", "positive factor, got inf"),
        ("burst:module=a,catch_up=true,spread=true", "choose catch_up or spread"),
        ("bandit:explore=0", "above 0 and up to 1, got 0.0"),
    ],
)
def test_mistakes_are_refused_with_what_is_allowed(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_arm(text)
    assert says in str(error.value)


@given(st.text(max_size=40))
@settings(deadline=None)
def test_any_text_is_an_arm_or_a_config_error(text: str) -> None:
    try:
        arm = parse_arm(text)
    except ConfigError:
        return
    assert parse_arm(arm.label) == arm


def test_the_dataclass_refuses_what_the_text_would() -> None:
    with pytest.raises(ConfigError, match="no option 'module'"):
        Arm("uniform", module="caller")
    with pytest.raises(ConfigError, match="unknown scheme"):
        Arm("greedy")
    with pytest.raises(ConfigError, match="got nan"):
        Arm("bandit", explore=math.nan)
    with pytest.raises(ConfigError, match="needs module"):
        Arm("lock", module="a,b")


def test_every_option_is_described() -> None:
    assert OPTIONS.keys() == {field.name for field in fields(Arm)} - {"scheme"}


def test_every_scheme_is_described_and_implemented() -> None:
    assert SCHEMES.keys() == ROUTES.keys()
    for info in SCHEMES.values():
        assert info.description
        assert "\n" not in info.description
        assert not set(info.options) & set(COMMON_OPTIONS)
