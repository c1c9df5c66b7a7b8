"""The checker against the original one, on systematic mutations of every task and on random small cases."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from bfcl_cases import alternatives
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nograd.tasks.bfcl.checker import check
from nograd.tasks.bfcl.data import Entry
from nograd.tasks.bfcl.gold import gold_arguments

pytestmark = pytest.mark.oracle

Oracle = Callable[[Any, Any, Any], dict[str, Any]]
FOREIGN: list[Any] = [
    None, "", "text", "10", True, False, 0, 1, -1, 10, 1.0, 1.5, 10.0, float("inf"), float("nan"),
    [], [None], [""], ["a"], [1], [1.0], [True], [[]], [["a"]], [{}], [{"a": 1}], {}, {"a": 1}, {"": ""},
    (), (1.0,),
]  # fmt: skip
TWO_WRONGS: list[Any] = ["text", 7, None, [1], {"a": 1}]


def retyped(value: Any) -> Iterator[Any]:
    """The same value by another type, in another case, spelling, nesting or order."""
    yield from ([value], [[value]], {"value": value}, {str(value): value}, str(value))
    if isinstance(value, str):
        yield from (value.upper(), value.lower(), value.swapcase(), f" {value} ", value.replace(" ", ""))
        yield from (f"{value}.", f"-{value}", f"'{value}'", f'"{value}"', f"{value}!", value[:-1])
    elif isinstance(value, bool):
        yield from (not value, int(value), float(value))
    elif isinstance(value, (int, float)):
        yield from (float(value), int(value), -value, value + 1, value / 100, bool(value))
    elif isinstance(value, (list, tuple)):
        yield from (value[::-1], value[:-1], [*value, *value[:1]], tuple(value), [*value, None], [[*value]])
        for index, item in enumerate(value):
            for other in (*retyped(item), *FOREIGN) if not isinstance(item, (list, tuple)) else FOREIGN:
                yield [*value[:index], other, *value[index + 1 :]]
    elif isinstance(value, dict):
        yield dict(reversed(value.items()))
        yield {**value, "extra": 1}
        for key, item in value.items():
            yield {other: each for other, each in value.items() if other != key}
            yield {(key.upper() if other == key else other): each for other, each in value.items()}
            for other in (*retyped(item), *FOREIGN) if not isinstance(item, dict) else FOREIGN:
                yield {**value, key: other}


def mutations(entry: Entry) -> Iterator[list[dict[str, Any]]]:
    """Calls near the gold one."""
    name, base = entry.name, gold_arguments(entry)
    yield from ([], [{name: base}] * 2, [{name: {}}], [{name: {"unknown": 1}}])
    for other in (name.upper(), name.replace(".", "_"), name.replace("_", "."), f"{name}_", ""):
        yield [{other: base}]
    for arguments in argument_mutations(entry, base):
        yield [{name: arguments}]


def argument_mutations(entry: Entry, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (base, dict(reversed(base.items())), {**base, "unknown": 1}, {"unknown": 1, **base})
    for parameter, options in entry.gold.items():
        accepted = alternatives(options)
        for changed in [*accepted, *FOREIGN, *(other for value in accepted for other in retyped(value))]:
            yield {**base, parameter: changed}
        dropped = {key: value for key, value in base.items() if key != parameter}
        value = base.get(parameter, "")
        yield dropped
        for renamed in (parameter + "_", parameter.upper(), parameter.replace("_", ""), parameter[:-1]):
            yield {**dropped, renamed: value}
        for other in base:
            yield {**base, parameter: base[other], other: value}
            kept = {key: each for key, each in dropped.items() if key != other}
            yield {**kept, parameter: None}
            for first, second in product(TWO_WRONGS, repeat=2):
                yield {parameter: first, **kept, other: second}


def compare(oracle: Oracle, function: Any, calls: Any, truth: Any) -> tuple[str, bool]:
    """(the original's error type, "" if valid; agreement). Where it raises, ours must be invalid."""
    verdict = check(function, calls, truth)
    try:
        expected = oracle(function, calls, truth)
    except (TypeError, AttributeError, KeyError):
        return "raises", not verdict.valid
    if expected["valid"]:
        return "", verdict.valid
    error_type = expected["error_type"].removeprefix("simple_function_checker:")
    return error_type, not verdict.valid and verdict.error_type == error_type


def test_agrees_with_the_original_on_mutations_of_every_task(
    oracle: Oracle, entries: tuple[Entry, ...]
) -> None:
    outcomes: Counter[str] = Counter()
    for entry in entries:
        truth = list(entry.ground_truth)
        for calls in mutations(entry):
            error_type, agrees = compare(oracle, entry.function, calls, truth)
            assert agrees, (entry.id, calls, error_type, check(entry.function, calls, truth))
            outcomes[error_type] += 1
    assert outcomes.total() > 150_000
    assert outcomes[""] > 5000
    assert len(outcomes) >= 14


SCALARS: list[Any] = ["", "a", "A b", "1", 0, 1, 2.0, 1.5, True, False]
SCALAR = st.sampled_from(SCALARS)
OPTION_DICT = st.dictionaries(st.sampled_from("xy"), st.lists(SCALAR, min_size=1, max_size=2), max_size=2)
OPTION_DICTS = st.just("") | st.lists(OPTION_DICT | st.just(""), max_size=2)
GOLD: dict[str, st.SearchStrategy[Any]] = {
    "string": SCALAR,
    "integer": SCALAR,
    "float": SCALAR,
    "boolean": SCALAR,
    "any": SCALAR,
    "dict": st.just("") | OPTION_DICT,
    "array": st.just("") | st.lists(SCALAR, max_size=3),
    "tuple": st.just("") | st.lists(SCALAR, max_size=3),
}
VALUE = st.recursive(
    SCALAR | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], list[Any], Any]:
    """One declared parameter, its accepted values, and a value that often is one of them."""
    kind = draw(st.sampled_from(sorted(GOLD)))
    inner = draw(st.sampled_from(["string", "integer", "float", "boolean", "array", "dict"]))
    gold = OPTION_DICTS if inner == "dict" and kind in ("array", "tuple") else GOLD[kind]
    options = draw(st.lists(gold, min_size=1, max_size=3))
    value = draw(VALUE | st.sampled_from(options) | st.sampled_from(options).map(lambda option: [option]))
    return {"type": kind, "items": {"type": inner}}, options, value


@settings(deadline=None, max_examples=1000, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_agrees_with_the_original_on_random_schemas(oracle: Oracle, case: tuple[Any, Any, Any]) -> None:
    document, options, value = case
    parameters = {"type": "dict", "properties": {"p": document}, "required": []}
    function = {"name": "f", "parameters": parameters}
    error_type, agrees = compare(oracle, function, [{"f": {"p": value}}], [{"f": {"p": options}}])
    assert agrees, (error_type, check(function, [{"f": {"p": value}}], [{"f": {"p": options}}]))
