"""Tool-call parsing: right, or one failed call with a useful message; never an exception."""

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nograd.agent.toolcall import MAX_DEPTH, MAX_INTEGER, CallError, ParsedCall, parse_call

FAST = settings(deadline=None, max_examples=150)

texts = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
objects = st.dictionaries(texts, values, max_size=4)
prose = st.text(st.characters(codec="utf-8", exclude_characters="{}[]"), max_size=30)
json_like = st.lists(
    st.sampled_from([*'{}[]",:\\ \n`-1e', "true", "NaN", '"a"', "\ud800", "\x00"]), max_size=40
)


def error(text: str) -> str:
    call = parse_call(text)
    assert isinstance(call, CallError), call
    return call.message


@FAST
@given(st.text(st.characters(exclude_categories=())) | json_like.map("".join))
@example('{"a":"\\')
@example("{" * 100_000)
def test_any_text_gives_a_call_or_a_short_message(text):
    call = parse_call(text)
    if isinstance(call, CallError):
        assert 0 < len(call.message) < 200
        call.message.encode()
    else:
        json.dumps(call.arguments, allow_nan=False, ensure_ascii=False).encode()


@FAST
@given(
    objects,
    prose,
    prose,
    st.sampled_from([None, 2]),
    st.booleans(),
    st.sampled_from(["{}", "```json\n{}\n```"]),
)
def test_an_object_in_brace_free_prose_round_trips(arguments, before, after, indent, ascii_only, frame):
    source = json.dumps(arguments, indent=indent, ensure_ascii=ascii_only)
    parsed = parse_call(before + frame.replace("{}", source) + after)
    envelope = arguments.keys() == {"name", "arguments"}
    assert envelope or parsed == ParsedCall(arguments)


@FAST
@given(texts, objects)
def test_envelope_is_unwrapped(name, arguments):
    assert parse_call(json.dumps({"name": name, "arguments": arguments})) == ParsedCall(arguments, name)


@pytest.mark.parametrize(
    "plain",
    [
        {"name": "Peru"},
        {"arguments": {"a": 1}},
        {"name": "f", "arguments": "text"},
        {"name": 3, "arguments": {}},
        {"name": "f", "arguments": {}, "more": 1},
    ],
)
def test_only_the_exact_envelope_is_an_envelope(plain):
    assert parse_call(json.dumps(plain)) == ParsedCall(plain)


@FAST
@given(objects, st.data())
def test_a_truncated_object_is_never_a_call(arguments, data):
    source = json.dumps(arguments)
    cut = data.draw(st.integers(0, len(source) - 1))
    assert isinstance(parse_call(source[:cut]), CallError)


@FAST
@given(objects, objects, prose)
def test_two_objects_are_never_a_call(first, second, between):
    assert "more than one" in error(json.dumps(first) + between + json.dumps(second))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON object"),
        ("17 + 25", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('[{"a": 1}]', "not an array"),
        ('Call: [1, {"a": 1}]', "not an array"),
        ('a) b] [{"a": 1}]', "not an array"),
        ('{"a": 1}}', "one closing }"),
        ('{"a": 1, "a": 1}', "'a' appears twice"),
        ('{"a": {"b": 1, "\\u0062": 2}}', "'b' appears twice"),
        ('{"a": NaN}', "NaN is not"),
        ('{"a": -Infinity}', "-Infinity is not"),
        ('{"a": 1e999}', "too large"),
        ('{"a": ' + "9" * 5000 + "}", "too large"),
        (f'{{"a": {MAX_INTEGER + 1}}}', "too large"),
        (f'{{"a": -{MAX_INTEGER + 1}}}', "too large"),
        ('{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "nested too deeply"),
        ('{"a": 1', "cut off; close it with }"),
        ('{"a": "1', "cut off inside a string"),
        ('{"a": "1\\', "cut off inside a string"),
        (r'{"a": "\ud800"}', "stands alone"),
        (r'{"\udc00": 1}', "stands alone"),
        ('{"a": "\ud800"}', "stands alone"),
        ('{"a": "\n"}', "Invalid control character"),
        ("{'a': 1}", "double quotes"),
        ('{"a": 1,}', "not valid JSON"),
        ('{"a": [1}}', "not valid JSON"),
        ('{"a": 01}', "not valid JSON"),
        ('{"a": +1}', "not valid JSON"),
        ('{"a": True}', "not valid JSON"),
        ('Use {braces}: {"a": 1}', "more than one"),
    ],
)
def test_each_fault_is_named(text, message):
    assert message in error(text)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("{}", {}),
        ('{"a": "}{"}', {"a": "}{"}),
        (r'{"a": "\"}"}', {"a": '"}'}),
        (r'{"a": "\\"}', {"a": "\\"}),
        ('The "call" is [1]: {"a": {"b": [{}]}} "', {"a": {"b": [{}]}}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('[1] {"a": 1}', {"a": 1}),
        (r'{"a": "\ud83d\ude00"}', {"a": "😀"}),
        ('{"a": ' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}", None),
    ],
)
def test_awkward_calls_are_read_right(text, arguments):
    call = parse_call(text)
    assert isinstance(call, ParsedCall)
    assert arguments is None or call.arguments == arguments


def test_the_types_of_values_survive():
    call = parse_call('{"i": 1, "f": 1.0, "b": true, "n": null}')
    assert isinstance(call, ParsedCall)
    assert [type(value) for value in call.arguments.values()] == [int, float, bool, type(None)]


@pytest.mark.parametrize(
    "unit",
    ['{"', '{"a": "\\"', "[", "{[", '"\\', '{"a": 1}', "\n", "]", '{"a":1' + ",", "1"],
)
def test_time_is_linear_in_the_length(unit):
    def seconds(prefix, length):
        text = prefix + unit * (length // len(unit))
        start = time.process_time()
        parse_call(text)
        return time.process_time() - start

    # Quadratic work at this length would take minutes.
    for prefix in ("", "{", '{"', '{"a": ', '{"a": "\\'):
        assert seconds(prefix, 500_000) < 2
