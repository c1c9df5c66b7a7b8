"""The checker's rules, one by one, and that no answer makes it raise."""

import json
from typing import Any

import pytest
from bfcl_cases import alternatives
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.tasks.bfcl.checker import ERRORS, check
from nograd.tasks.bfcl.data import Entry
from nograd.tasks.bfcl.gold import gold_arguments

PROPERTIES: dict[str, Any] = {
    "s": {"type": "string"},
    "i": {"type": "integer"},
    "f": {"type": "float"},
    "b": {"type": "boolean"},
    "d": {"type": "dict"},
    "any": {"type": "any"},
    "si": {"type": "array", "items": {"type": "string"}},
    "ai": {"type": "array", "items": {"type": "integer"}},
    "af": {"type": "array", "items": {"type": "float"}},
    "aa": {"type": "array", "items": {"type": "array"}},
    "ad": {"type": "array", "items": {"type": "dict"}},
    "t": {"type": "tuple", "items": {"type": "float"}},
}
DICTS: list[Any] = [{"a": [1, 2], "b": ["x", ""]}, {"c": ["Y z"]}]


def function(required: tuple[str, ...] = ()) -> dict[str, Any]:
    parameters = {"type": "dict", "properties": PROPERTIES, "required": list(required)}
    return {"name": "area.of", "description": "", "parameters": parameters}


def error_of(parameter: str, value: Any, options: list[Any]) -> str:
    truth = [{"area.of": {parameter: options}}]
    return check(function(), [{"area.of": {parameter: value}}], truth).error_type


VALUES: list[tuple[str, Any, list[Any], str]] = [
    ("s", "New York", ["newyork"], ""),
    ("s", "1.5", ["15"], ""),
    ("s", "-5", ["5"], ""),
    ("s", "a, b-c/d_e.f*g^2", ["ABCDEFG2"], ""),
    ("s", "it's", ['IT"S'], ""),
    ("s", "new+york", ["New York"], "value_error:string"),
    ("s", "", ["a", ""], ""),
    ("s", None, ["a", ""], "type_error:simple"),
    ("s", 5, ["5"], "type_error:simple"),
    ("s", True, ["", True], ""),  # gold of another type: a variable
    ("s", False, ["", True], "value_error:others"),
    ("s", "true", ["", True], "value_error:others"),
    ("any", "my data", ["mydata"], ""),
    ("i", 5, [5], ""),
    ("i", 6, [5], "value_error:others"),
    ("i", True, [1], "type_error:simple"),
    ("i", 10.0, [10], "type_error:simple"),
    ("i", 10.0, [10.0], ""),
    ("i", 10, [10.0], ""),
    ("i", "", [5, ""], "type_error:simple"),
    ("i", 5, [""], "value_error:others"),
    ("i", "five", ["Five"], "value_error:others"),  # variables are compared raw
    ("f", 5, [5.0], ""),
    ("f", 5, [5], ""),
    ("f", True, [1.0], "type_error:simple"),
    ("f", 10**400, [1.0], "type_error:simple"),
    ("b", True, [True], ""),
    ("b", False, [True], "value_error:others"),
    ("b", 1, [True], "type_error:simple"),
    ("si", ["New York"], [["newyork"]], ""),
    ("si", ["b", "a"], [["a", "b"]], "value_error:list/tuple"),
    ("si", [1], [["1"]], "type_error:nested"),
    ("si", [], [["a"], ""], ""),
    ("si", [], [["a"]], "value_error:list/tuple"),
    ("si", "a", [["a"]], "type_error:simple"),
    ("si", None, [["a"], ""], "type_error:simple"),
    ("ai", [True, 2], [[1, 2], ""], ""),
    ("ai", [True, 2], [[1, 2]], "type_error:nested"),
    ("af", [1, 2], [[1.0, 2.0]], "type_error:nested"),
    ("af", [1, 2], [[1.0, 2.0], ""], ""),
    ("aa", [["a"]], [[["a"]]], ""),
    ("aa", [["A"]], [[["a"]]], "value_error:list/tuple"),
    ("t", (1.0, 2.0), [[1.0, 2.0]], ""),
    ("t", [1.0, 2.0], [[1.0, 2.0]], ""),
    ("af", (1.0, 2.0), [[1.0, 2.0]], "type_error:simple"),
    ("d", {"a": 1}, DICTS, ""),
    ("d", {"a": True, "b": "X"}, DICTS, ""),
    ("d", {"c": "yz"}, DICTS, ""),
    ("d", {"a": 3}, DICTS[:1], "value_error:dict_value"),
    ("d", {"a": 3}, DICTS, "value_error:dict_key"),  # the last option's error
    ("d", {"b": "x"}, DICTS[:1], "value_error:dict_key"),
    ("d", {"a": 1, "z": 0}, DICTS[:1], "value_error:dict_key"),
    ("d", {}, [""], "dict_checker:unclear"),
    ("d", [], DICTS, "type_error:simple"),
    ("ad", [{"a": 1}, {"c": "Yz"}], [DICTS], ""),
    ("ad", [{"c": "Yz"}, {"a": 1}], [DICTS], "value_error:dict_key"),
    ("ad", [{"a": 1}], [DICTS], "value_error:list_dict_count"),
    ("ad", [{"a": 9}, {"c": "Yz"}], [DICTS, DICTS[:1]], "value_error:list_dict_count"),
    ("ad", ["a"], [DICTS[:1]], "type_error:nested"),
    ("ad", ["a"], [DICTS[:1], ""], "value_error:list_dict_count"),
    ("ad", ["a"], ["", DICTS[:1]], "type_error:nested"),
    ("ad", [""], ["", [""]], "dict_checker:unclear"),
    ("ad", [], [DICTS, ""], ""),
]


@pytest.mark.parametrize(("parameter", "value", "options", "expected"), VALUES)
def test_value_rules(parameter: str, value: Any, options: list[Any], expected: str) -> None:
    assert error_of(parameter, value, options) == expected


ANSWERS: list[tuple[Any, str]] = [
    ("no JSON", "decoder_failed"),
    ("[" * 100_000, "decoder_failed"),
    ("5", "decoder_wrong_output_format"),
    ({"area.of": {}}, "decoder_wrong_output_format"),
    ([{"area.of": 5}], "decoder_wrong_output_format"),
    ([{"area.of": {}, "b": {}}], "decoder_wrong_output_format"),
    ([{}], "decoder_wrong_output_format"),
    ([], "wrong_count"),
    ([{"area.of": {"i": 1}}] * 2, "wrong_count"),
    ([{"area_of": {"i": 1}}], "wrong_func_name"),
    ([{"Area.of": {"i": 1}}], "wrong_func_name"),
    ([{"area.of": {"x": 1}}], "missing_required"),
    ([{"area.of": {"i": "one", "x": 1}}], "type_error:simple"),
    ([{"area.of": {"x": 1, "i": "one"}}], "unexpected_param"),
    ([{"area.of": {"i": 1, "b": True}}], "unexpected_param"),  # in the schema, not in gold
    ([{"area.of": {"i": 1}}], "missing_optional"),
    ([{"area.of": {"i": 1, "s": "a"}}], ""),
    ('[{"area.of": {"s": "a", "f": 2, "i": 1}}]', ""),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_call_rules_in_their_order(answer: Any, expected: str) -> None:
    truth = [{"ignored": {"i": [1], "s": ["a"], "f": [2.0, ""]}}]
    verdict = check(function(("i",)), answer, truth)
    assert (verdict.error_type, verdict.valid) == (expected, expected == "")
    assert bool(verdict.message) == (expected != "")


def test_required_parameter_is_needed_even_where_gold_lets_it_be_absent() -> None:
    verdict = check(function(("i",)), [{"area.of": {}}], [{"area.of": {"i": [1, ""]}}])
    assert verdict.error_type == "missing_required"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("a"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(
    st.dictionaries(st.just("area.of"), st.dictionaries(st.sampled_from(list(PROPERTIES)), JSON), min_size=1),
    min_size=1,
    max_size=1,
)
TRUTH = [
    {
        "area.of": {
            "s": ["a", ""], "i": [1, ""], "f": [1.0, ""], "b": [True, ""], "d": [*DICTS, ""], "any": ["", 1],
            "si": [["a"], ""], "ai": [[1]], "af": [[1.0], ""], "aa": [[["a"]], ""], "ad": ["", DICTS],
            "t": [[1.0], ""],
        }
    }
]  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(JSON | CALLS | st.text())
def test_never_raises(answer: Any) -> None:
    verdict = check(function(), answer, TRUTH)
    assert verdict.valid or verdict.error_type in ERRORS


def test_deep_and_cyclic_values_are_wrong_answers() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    cyclic: dict[str, Any] = {}
    cyclic["a"] = cyclic
    for parameter, value in [("si", deep), ("aa", deep), ("ad", [cyclic]), ("d", cyclic)]:
        assert error_of(parameter, value, TRUTH[0]["area.of"][parameter])


def test_every_gold_alternative_of_every_task_passes(entries: tuple[Entry, ...]) -> None:
    """Parameter by parameter beside the canonical arguments, as decoded values and as JSON text."""
    tried = 0
    options = [options for entry in entries for options in entry.gold.values()]
    listed = sum(option != "" for accepted in options for option in accepted)
    for entry in entries:
        base = gold_arguments(entry)
        for name, accepted in entry.gold.items():
            for value in alternatives(accepted):
                calls = [{entry.name: {**base, name: value}}]
                for answer in (calls, json.dumps(calls)):
                    assert check(entry.function, answer, entry.ground_truth).valid, (entry.id, name, value)
                tried += 1
            absent = {key: value for key, value in base.items() if key != name}
            optional = "" in accepted and name not in entry.function["parameters"]["required"]
            verdict = check(entry.function, [{entry.name: absent}], entry.ground_truth)
            assert verdict.valid == optional, (entry.id, name)
    assert tried >= listed > 1000
