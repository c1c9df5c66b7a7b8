"""Request bodies: what is understood, and one sentence for everything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.llm.chat import Message
from nograd.serve.api_error import ApiError
from nograd.serve.chat_request import FREE, NEUTRAL, ChatRequest, parse_chat, parse_question

MESSAGES = [{"role": "user", "content": "hello"}]


def parse(**parameters: Any) -> ChatRequest:
    return parse_chat(json.dumps({"model": "m", "messages": MESSAGES, **parameters}).encode())


def refusal(**parameters: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        parse(**parameters)
    assert caught.value.status == 400
    return caught.value


def test_all_that_is_understood() -> None:
    chat = parse(
        messages=[
            {"role": "developer", "content": "be brief", "name": None},
            {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "", "refusal": None, "tool_calls": None},
            {"role": "user", "content": "hello"},
        ],
        max_completion_tokens=5,
        stop="x",
        stream=True,
        stream_options={"include_usage": True},
    )
    assert [message.message() for message in chat.messages] == [
        Message("system", "be brief"),
        Message("system", "ab"),
        Message("assistant", ""),
        Message("user", "hello"),
    ]
    assert (chat.token_limit, chat.stop, chat.stream, chat.with_usage) == (5, ["x"], True, True)


def test_nothing_but_the_messages_is_needed() -> None:
    chat = parse()
    assert (chat.token_limit, chat.stop, chat.stream, chat.with_usage) == (None, None, None, False)


@pytest.mark.parametrize("name", sorted(NEUTRAL))
def test_a_parameter_that_asks_for_what_happens_anyway_is_accepted(name: str) -> None:
    for value in (*NEUTRAL[name][0], None):
        assert parse(**{name: value}).model == "m"
    refused = refusal(**{name: 0.5})
    assert (refused.param, refused.code) == (name, "unsupported_parameter")
    assert str(refused).startswith(f"{name} = 0.5: ")


@pytest.mark.parametrize("name", sorted(FREE))
def test_parameters_without_effect_are_accepted(name: str) -> None:
    assert parse(**{name: 0.5}).model == "m"


@pytest.mark.parametrize(
    ("parameters", "param", "sentence"),
    [
        ({"max_token": 3}, "max_token", "unknown parameter 'max_token'; did you mean 'max_tokens'?"),
        ({"messages": []}, "messages", "at least 1 item"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "'system', 'developer', 'user'"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "valid string"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content", "type 'text'"),
        ({"messages": [*MESSAGES, {**MESSAGES[0], "name": "me"}]}, "messages[1].name", "unknown parameter"),
        ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
        ({"max_tokens": True}, "max_tokens", "valid integer"),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens", "contradict each other"),
        ({"stop": ["a"] * 5}, "stop", "at most 4 items"),
        ({"stop": [""]}, "stop[0]", "at least 1 character"),
        ({"stream": 1}, "stream", "valid boolean"),
        ({"stream_options": {"usage": True}}, "stream_options.usage", "known: include_usage"),
        ({"temperature": 0.7}, "temperature", "temperature = 0.7: decoding is greedy"),
        ({"tools": [{"type": "function"}]}, "tools", "/agent"),
        ({"model": None}, "model", "valid string"),
    ],
)
def test_a_mistake_is_named_with_its_parameter(parameters: dict[str, Any], param: str, sentence: str) -> None:
    refused = refusal(**parameters)
    assert refused.param == param
    assert sentence in str(refused)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b'{"model": NaN}', b"\xff", b'{"a":' * 100_000])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    for parse_body in (parse_chat, parse_question):
        with pytest.raises(ApiError) as caught:
            parse_body(body)
        assert caught.value.status == 400


def test_lone_surrogates_are_no_text() -> None:
    with pytest.raises(ApiError, match="Invalid JSON"):
        parse_question(b'{"question": "\\ud800"}')


def test_long_values_are_not_repeated() -> None:
    assert len(str(refusal(temperature="x" * 10_000))) < 250
    assert len(str(refusal(**{"x" * 10_000: 1}))) < 700


NAMES = st.sampled_from([*ChatRequest.model_fields, *NEUTRAL, *FREE, "question", "which", "role", "content", "type"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["user", "tuned"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(NAMES | st.text(max_size=3), JSON), st.booleans())
def test_any_body_is_parsed_or_refused_with_a_sentence(parameters: dict[str, Any], complete: bool) -> None:
    if complete:
        parameters = {**parameters, "model": "m", "messages": MESSAGES}
    body = json.dumps(parameters).encode()
    for parse_body in (parse_chat, parse_question):
        refused = refusal_of(parse_body, body)
        assert refused is None or (refused.status == 400 and str(refused))
        assert refused is None or json.dumps(refused.body()).encode("ascii")


def refusal_of(parse_body: Callable[[bytes], object], body: bytes) -> ApiError | None:
    try:
        parse_body(body)
    except ApiError as error:
        return error
    return None
