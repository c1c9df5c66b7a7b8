"""Strict JSON: one spelling for one content, non-finite numbers included."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.run.strict_json import dumps, loads

keys = st.text(max_size=6).filter(lambda key: key != "non_finite") | st.sampled_from(
    ["a/b", "~", "~1", "0", ""]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)
records = st.dictionaries(keys, values, max_size=5)


def refuse(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


@settings(deadline=None)
@given(record=records)
def test_round_trip_through_strict_bytes(record: dict[str, Any]) -> None:
    data = dumps(record)
    json.loads(data, parse_constant=refuse)
    assert b"\n" not in data
    assert repr(loads(data)) == repr(in_order(record))
    assert dumps(loads(data)) == data


def in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value


def test_non_finite_numbers_are_null_and_flagged() -> None:
    data = dumps({"fitness": [1.0, float("nan")], "a/b": float("-inf")})
    assert data == b'{"a/b":null,"fitness":[1.0,null],"non_finite":{"/a~1b":"-inf","/fitness/1":"nan"}}'


def test_arrays_and_array_scalars_are_plain_numbers() -> None:
    record = {
        "x": np.float32(0.5),
        "y": np.array([1, 2]),
        "z": np.float64("nan"),
        "w": (True, np.bool_(False)),
    }
    assert dumps(record) == b'{"non_finite":{"/z":"nan"},"w":[true,false],"x":0.5,"y":[1,2],"z":null}'


@pytest.mark.parametrize("data", [b"NaN", b'{"x":Infinity}', b"[]", b"3", b"{", b"\xff"])
def test_what_was_not_written_here_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        loads(data)


def test_the_flag_s_name_is_reserved() -> None:
    with pytest.raises(ValueError, match="reserved"):
        dumps({"non_finite": 1})
