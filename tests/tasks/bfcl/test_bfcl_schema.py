"""Feedback names what the schema says, and nothing else."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.tasks.bfcl.data import Entry
from nograd.tasks.bfcl.gold import gold_arguments
from nograd.tasks.bfcl.schema import feedback

FUNCTION: dict[str, Any] = {
    "name": "f",
    "parameters": {
        "properties": {
            "place": {"type": "string"},
            "days": {"type": "integer"},
            "rate": {"type": "float"},
            "pair": {"type": "tuple", "items": {"type": "float"}},
            "filters": {"type": "dict"},
        },
        "required": ["place"],
    },
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("place", "the arguments must be one JSON object"),
        (None, "the arguments must be one JSON object"),
        ({"days": "x"}, "missing required parameter 'place'"),
        (
            {"place": "Rome", "day": 3},
            "unknown parameter 'day'; allowed: place, days, rate, pair, filters",
        ),
        ({"place": 5}, "parameter 'place' must be string"),
        ({"place": "Rome", "days": 3.0}, "parameter 'days' must be integer"),
        ({"place": "Rome", "days": True}, "parameter 'days' must be integer"),
        ({"place": "Rome", "rate": "1"}, "parameter 'rate' must be float"),
        ({"place": "Rome", "rate": 1}, None),
        ({"place": "Rome", "pair": [1.0, "2"]}, "parameter 'pair' must be array of float"),
        ({"place": "Rome", "pair": (1.0, 2.0)}, None),
        ({"place": "Rome", "filters": []}, "parameter 'filters' must be object"),
        ({"place": ""}, None),
    ],
)
def test_feedback(arguments: Any, expected: str | None) -> None:
    assert feedback(FUNCTION, arguments) == expected


def test_a_long_unknown_name_is_cut() -> None:
    text = feedback(FUNCTION, {"place": "Rome", "x" * 10_000: 1})
    assert text is not None
    assert len(text) < 120


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=200)
@given(JSON | st.dictionaries(st.sampled_from(list(FUNCTION["parameters"]["properties"])), JSON))
def test_feedback_never_raises_and_objects_to_every_wrong_type(arguments: Any) -> None:
    text = feedback(FUNCTION, arguments)
    if text is None:
        assert isinstance(arguments["place"], str)


def test_gold_calls_draw_no_objection(entries: tuple[Entry, ...]) -> None:
    assert all(feedback(entry.function, gold_arguments(entry)) is None for entry in entries)
