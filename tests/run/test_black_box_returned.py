"""What a black box may return, and the sentences for what it may not."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.errors import ConfigError
from nograd.run.returned import read_returned
from nograd.search.evaluation import Evaluation

MODULES = ("a", "b")
SHARES = st.floats(0, 1)
NUMBERS = st.floats(-1e6, 1e6)


@given(SHARES)
@settings(deadline=None)
def test_a_number_is_all_three(share: float) -> None:
    assert read_returned(share, MODULES) == Evaluation(share, share, share)
    assert read_returned(np.float64(share), MODULES) == Evaluation(share, share, share)


@pytest.mark.parametrize(("value", "number"), [(True, 1.0), (0, 0.0), (np.float32(0.5), 0.5), (Fraction(1, 4), 0.25)])
def test_numbers_of_every_kind(value: Any, number: float) -> None:
    assert read_returned(value, MODULES) == Evaluation(number, number, number)


@given(
    st.fixed_dictionaries(
        {"success": SHARES},
        optional={
            "fitness": NUMBERS,
            "reward": NUMBERS,
            "blame": st.none() | st.tuples(SHARES, SHARES),
            "metrics": st.dictionaries(st.sampled_from(["m", "n"]), NUMBERS),
        },
    )
)
@settings(deadline=None)
def test_a_mapping_reads_alike_from_json(values: dict[str, Any]) -> None:
    read = read_returned(values, MODULES)
    assert read == read_returned(json.loads(json.dumps(values)), MODULES)
    assert read.success == values["success"]
    assert read.fitness == values.get("fitness", read.success)
    assert read.reward == values.get("reward", read.fitness)
    assert read.blame == values.get("blame")
    assert read.metrics == values.get("metrics", {})
    assert read_returned(read, MODULES) is read


@given(st.dictionaries(st.sampled_from(MODULES), SHARES))
@settings(deadline=None)
def test_blame_by_name(blame: dict[str, float]) -> None:
    expected = (blame.get("a", 0.0), blame.get("b", 0.0))
    assert read_returned({"success": 0.5, "blame": blame}, MODULES).blame == expected


@pytest.mark.parametrize("fitness", [float("nan"), float("inf"), -float("inf")])
def test_no_result_needs_no_success(fitness: float) -> None:
    assert str(read_returned({"success": float("nan"), "fitness": fitness}, MODULES).fitness) == str(fitness)
    assert str(read_returned(fitness, MODULES).success) == str(fitness)


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("0.5", "returned value '0.5'; it must return a number, a mapping with success, fitness"),
        (None, "returned value None"),
        ([0.5], r"returned value \[0.5\]"),
        (np.array([0.1, 0.2]), "returned value array"),
        (1 + 2j, "returned value"),
        (1.5, "success 1.5; it must be a share between 0 and 1"),
        ({}, "without success"),
        ({"fitness": 1.0}, "without success"),
        ({"sucess": 1.0}, "did you mean 'success'"),
        ({"success": 0.5, "fitness": None}, "returned fitness None; it must be a number"),
        ({"success": float("nan"), "fitness": 1.0}, "success nan"),
        ({"success": 0.5, "metrics": {"m": "high"}}, "returned m 'high'"),
        ({"success": 0.5, "metrics": [1]}, r"returned metrics \[1\]"),
        ({"success": 0.5, "blame": {"c": 1.0}}, "unknown module in blame 'c'"),
        ({"success": 0.5, "blame": [1.0]}, "one share for each of a, b"),
        ({"success": 0.5, "blame": "a"}, "one share for each of a, b"),
        (Evaluation(0.1, -0.1, 0.1), "success -0.1"),
    ],
)
def test_mistakes_are_sentences(returned: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read_returned(returned, MODULES)
