"""OpenAI's own client against a real server: stages, streams, company, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import openai
import pytest
from running import Running, until

from nograd.llm.chat import Message
from nograd.llm.requests import Completion, CompletionRequest
from nograd.run.load import RunRecord
from nograd.serve.engine_thread import SLICE
from nograd.serve.limits import Limits
from nograd.serve.served import Served

STAGES = ("planner", "selector", "caller", "synthesizer")


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


def alone(served: Served, name: str, text: str, max_tokens: int) -> Completion:
    """The engine's own answer, asked without the server."""
    stage = served.stages[name]
    prompt = tuple(served.chat.encode_chat([Message("user", text)]))
    (result,) = served.engine.run([CompletionRequest(stage.module, stage.theta, prompt, max_tokens)])
    assert isinstance(result, Completion)
    return result


def test_models_are_the_stages_the_untouched_model_and_the_agent(server: Running) -> None:
    client = server.client()
    assert [model.id for model in client.models.list()] == [*STAGES, "base", "agent"]
    assert client.models.retrieve("caller").id == "caller"
    with pytest.raises(openai.NotFoundError, match="did you mean 'caller'"):
        client.models.retrieve("callr")


@pytest.mark.parametrize("name", [*STAGES, "base"])
def test_a_stage_answers_what_the_engine_answers_under_its_coefficients(
    name: str, server: Running, served: Served
) -> None:
    answer = server.client().chat.completions.create(model=name, messages=user("stream me"), max_tokens=11)
    expected = alone(served, name, "stream me", 11)
    (choice,) = answer.choices
    assert choice.message.content == served.chat.decode(expected.tokens)
    assert choice.finish_reason == expected.finish
    assert (answer.object, answer.model, answer.id[:9]) == ("chat.completion", name, "chatcmpl-")
    assert answer.usage is not None
    prompt = len(served.chat.encode_chat([Message("user", "stream me")]))
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (prompt, len(expected.tokens))
    assert answer.usage.total_tokens == prompt + len(expected.tokens)


def test_the_stages_differ_from_the_untouched_model(served: Served) -> None:
    texts = {served.chat.decode(alone(served, name, "stream me", 30).tokens) for name in (*STAGES, "base")}
    assert len(texts) >= 4, "or the tests above could mistake one for another"
    assert np.frombuffer(served.stages["base"].theta, np.float32).any() == np.False_


def test_a_stream_is_the_same_answer_slice_by_slice(server: Running, served: Served) -> None:
    stream = server.client().chat.completions.create(
        model="planner",
        messages=user("stream me"),
        max_tokens=5 * SLICE,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    expected = alone(served, "planner", "stream me", 5 * SLICE)
    *content, counted = chunks
    texts = [chunk.choices[0].delta.content or "" for chunk in content]
    assert "".join(texts) == served.chat.decode(expected.tokens)
    assert sum(map(bool, texts)) == -(-len(expected.tokens) // SLICE), "one chunk per slice: a real stream"
    assert content[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in content[:-1]] == [None] * (len(content) - 1)
    assert content[-1].choices[0].finish_reason == expected.finish
    assert counted.choices == []
    assert counted.usage is not None
    assert counted.usage.completion_tokens == len(expected.tokens)
    assert len({chunk.id for chunk in chunks}) == 1


def test_pieces_are_sent_while_the_rest_is_computed(server: Running) -> None:
    stream = server.client().chat.completions.create(
        model="base", messages=user("stream me"), max_tokens=10 * SLICE, stream=True
    )
    before = len(server.calls)
    texts = (chunk.choices[0].delta.content for chunk in stream)
    assert next(text for text in texts if text)
    server.hold.clear()
    assert len(server.calls) - before < 10, "a piece has come although the answer is not finished"
    server.hold.set()
    assert "".join(text for text in texts if text)


def test_stop_strings_end_the_answer(server: Running, served: Served) -> None:
    whole = served.chat.decode(alone(served, "caller", "Hi", 40).tokens)
    stop = whole[17:19]
    expected = whole[: whole.index(stop)]
    for stream in (False, True):
        parameters: dict[str, Any] = {"model": "caller", "messages": user("Hi"), "max_tokens": 40, "stop": [stop]}
        if stream:
            chunks = list(server.client().chat.completions.create(**parameters, stream=True))
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            finish = chunks[-1].choices[0].finish_reason
        else:
            answer = server.client().chat.completions.create(**parameters)
            text, finish = answer.choices[0].message.content, answer.choices[0].finish_reason
            assert answer.usage is not None
            assert answer.usage.completion_tokens == len(expected) + 2, "the model's tokens are characters"
        assert (text, finish) == (expected, "stop")


def test_requests_of_all_stages_share_engine_calls_and_equal_those_alone(server: Running, served: Served) -> None:
    """Ten clients, four stages and the untouched model: four different rows of θ in each forward pass."""
    asked = [((*STAGES, "base")[i % 5], f"question {i}", 3 * SLICE + i) for i in range(10)]

    def ask(name: str, text: str, max_tokens: int) -> str | None:
        client = server.client()
        answer = client.chat.completions.create(model=name, messages=user(text), max_tokens=max_tokens)
        return answer.choices[0].message.content

    first = len(server.calls)
    server.hold.clear()
    with ThreadPoolExecutor(10) as clients:
        answers = [clients.submit(ask, *each) for each in asked]
        until(lambda: server.pending == 10)
        server.hold.set()
        texts = [answer.result() for answer in answers]
    calls = server.calls[first:]
    slices = sum(-(-tokens // SLICE) for _, _, tokens in asked)
    assert max(map(len, calls)) >= 9
    assert len(calls) < slices / 4, f"{slices} slices in {len(calls)} calls"
    assert {(r.module, r.theta) for r in max(calls, key=len)} == {
        (stage.module, stage.theta) for stage in served.stages.values()
    }
    served.engine.forget()
    assert texts == [served.chat.decode(alone(served, *each).tokens) for each in asked]


def test_a_conversation_goes_on_from_what_is_in_the_cache(server: Running) -> None:
    client = server.client()
    turns = user("first question " * 20)
    answer = client.chat.completions.create(model="base", messages=turns, max_tokens=8).choices[0].message
    before = server.engine.engine.counts.tokens_prefilled
    more = [*turns, {"role": "assistant", "content": answer.content}, *user("next")]
    client.chat.completions.create(model="base", messages=more, max_tokens=1)
    assert server.engine.engine.counts.tokens_prefilled - before < 40


def refused(
    server: Running, error: type[openai.APIStatusError], code: str | None, **parameters: Any
) -> openai.APIStatusError:
    values = {"model": "planner", "messages": user("Hi"), **parameters}
    with pytest.raises(error) as caught:
        server.client().chat.completions.create(**values)
    assert caught.value.code == code
    return caught.value


def test_refusals_are_the_client_s_own_exceptions(server: Running) -> None:
    bad, missing = openai.BadRequestError, openai.NotFoundError
    assert "did you mean 'planner'?" in str(refused(server, missing, "model_not_found", model="plannr"))
    assert refused(server, bad, "unsupported_parameter", temperature=0.7).param == "temperature"
    refused(server, bad, "unsupported_parameter", n=2)
    refused(server, bad, "unsupported_parameter", logprobs=True)
    refused(server, bad, "unsupported_parameter", tools=[{"type": "function", "function": {"name": "f"}}])
    refused(server, bad, "unknown_parameter", extra_body={"top_k": 3})
    assert "more than the 512" in str(refused(server, bad, "invalid_value", max_tokens=513))
    refused(server, bad, None, messages=[])
    assert "[0].role" in str(refused(server, bad, None, messages=[{"role": "tool", "content": "x"}]))
    error = refused(server, bad, "context_length_exceeded", messages=user("x" * 4095))
    assert "4096 tokens in all" in str(error)
    assert error.type == "invalid_request_error"
    refused(server, bad, "context_length_exceeded", messages=user("x" * 4000), max_tokens=200, stream=True)


def test_without_a_limit_the_answer_fills_the_room_that_is_left(server: Running, served: Served) -> None:
    text = "x" * 4080
    room = 4096 - len(served.chat.encode_chat([Message("user", text)]))
    assert 0 < room < 16
    answer = server.client().chat.completions.create(model="base", messages=user(text))
    assert answer.usage is not None
    assert answer.usage.completion_tokens == room or answer.choices[0].finish_reason == "stop"


def test_the_agent_as_a_model_is_the_tuned_agent(server: Running, record: RunRecord) -> None:
    client = server.client()
    question = "What is 3 plus 4?"
    whole = server.post("/agent", json={"question": question}).json()
    answer = client.chat.completions.create(model="agent", messages=[*user("ignored"), *user(question)])
    assert answer.choices[0].message.content == whole["tuned"]["answer"]
    assert answer.usage is not None
    assert answer.usage.completion_tokens == whole["usage"]["completion_tokens"] > 0
    chunks = list(client.chat.completions.create(model="agent", messages=user(question), stream=True))
    assert [c.choices[0].delta.content for c in chunks if c.choices[0].delta.content] == [whole["tuned"]["answer"]]
    refused(server, openai.BadRequestError, "unsupported_parameter", model="agent", max_tokens=3)
    refused(server, openai.BadRequestError, "unsupported_parameter", model="agent", stop="x")
    last = [*user("x"), {"role": "assistant", "content": "y"}]
    refused(server, openai.BadRequestError, None, model="agent", messages=last)
    assert record.complete


def test_many_at_once_answer_as_one_after_another(server: Running) -> None:
    """Agents and chats, streamed or not, together: nothing of one shows in another."""

    def ask(i: int) -> Sequence[str | None]:
        client = server.client()
        if i % 3 == 0:
            found = server.post("/agent", json={"question": f"What is {i} plus 4?", "which": "both"}).json()
            return [found["tuned"]["answer"], found["untouched"]["answer"], str(found["tuned"]["steps"])]
        parameters: dict[str, Any] = {"model": STAGES[i % 4], "messages": user(f"say {i}"), "max_tokens": 10}
        if i % 3 == 1:
            return [
                "".join(
                    c.choices[0].delta.content or "" for c in client.chat.completions.create(**parameters, stream=True)
                )
            ]
        return [client.chat.completions.create(**parameters).choices[0].message.content]

    one_by_one = [ask(i) for i in range(12)]
    with ThreadPoolExecutor(12) as clients:
        assert list(clients.map(ask, range(12))) == one_by_one


def test_limits_default_to_what_the_manual_says() -> None:
    assert Limits() == Limits(requests=64, max_tokens=512, timeout=120.0, body_bytes=1 << 20)
