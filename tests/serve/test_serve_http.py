"""Below the client: the agent's endpoint, limits, keys, hosts, clients that go away, any bytes at all."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import Running, running, until

from nograd.cli.agents import play
from nograd.run.load import RunRecord
from nograd.run.rebuild import free_task, rebuild
from nograd.serve.engine_thread import SLICE
from nograd.serve.limits import Limits
from nograd.serve.one_at_a_time import OneAtATime
from nograd.serve.served import Served
from nograd.tasks.family import Task, ToolResult
from nograd.tasks.in_house import InHouse, in_house

LONG = {"model": "base", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 400}
SHORT = {**LONG, "max_tokens": 2}


def error_of(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    return dict(error)


def test_the_agent_endpoint_is_nograd_ask(server: Running, record: RunRecord) -> None:
    question = "What is 3 plus 4?"
    found = server.post("/agent", json={"question": question, "which": "both"}).json()
    evaluator = rebuild(record, "cpu")
    expected = play(
        evaluator, record.config, free_task(evaluator.family, question), (record.theta[0], record.theta[-1])
    )
    for name, trajectory in zip(("untouched", "tuned"), expected, strict=True):
        steps = [{"stage": s.stage, "text": s.text, "outcome": s.outcome} for s in trajectory.steps]
        assert found[name] == {"answer": trajectory.answer, "attempts": trajectory.attempts, "steps": steps}
    assert {step["stage"] for step in found["tuned"]["steps"]} >= {"planner", "selector", "synthesizer"}
    assert found["tuned"]["steps"] != found["untouched"]["steps"]


@pytest.fixture(scope="module")
def second(served: Served) -> Iterator[Running]:
    """A server with room for two requests of 1,000 bytes and short answers."""
    with running(served, Limits(requests=2, max_tokens=8, body_bytes=1000)) as server:
        yield server


def test_the_agent_endpoint_names_what_was_asked_for(second: Running) -> None:
    for which in ("tuned", "untouched"):
        found = second.post("/agent", json={"question": "What is 1 + 1?", "which": which}).json()
        assert set(found) == {"question", which, "usage"}
    assert error_of(second.post("/agent", json={"question": "x", "which": "best"}), 400)["param"] == "which"
    assert error_of(second.post("/agent", json={"question": ""}), 400)["param"] == "question"
    assert (
        "did you mean 'question'?"
        in error_of(second.post("/agent", json={"question": "x", "questoin": "y"}), 400)["message"]
    )


def test_a_question_that_the_agent_cannot_read_is_too_long(served: Served) -> None:
    with running(served) as server:
        error = error_of(server.post("/agent", json={"question": "x" * 5000}), 400)
    assert error["code"] == "context_length_exceeded"


def test_tools_that_know_no_free_question_say_so_before_anything_is_sent(served: Served) -> None:
    """The bfcl families know their own questions only; `free_task` tells them by name."""
    known = in_house()
    family = InHouse("bfcl_like", known.tasks, known.examples, known.tools)
    assert served.agent is not None
    with running(replace(served, agent=replace(served.agent, family=family))) as server:
        assert known.tasks[0].id in error_of(server.post("/agent", json={"question": "x"}), 400)["message"]
        chat = {"model": "agent", "messages": [{"role": "user", "content": "x"}], "stream": True}
        error_of(server.post("/v1/chat/completions", json=chat), 400)
        assert server.post("/agent", json={"question": known.tasks[0].id}).status_code == 200


def test_tools_are_never_called_at_the_same_time() -> None:
    inside, most = 0, 0

    class Slow(InHouse):
        def call(self, task: Task, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            time.sleep(0.005)
            inside -= 1
            return super().call(task, tool, arguments)

    known = in_house()
    slow = OneAtATime(Slow("slow", known.tasks, known.examples, known.tools))
    task = known.tasks[0]
    with ThreadPoolExecutor(8) as threads:
        calls = [threads.submit(slow.call, task, task.tool, task.arguments) for _ in range(16)]
        assert {call.result().output for call in calls} == {task.tool_output}
    assert most == 1
    assert slow.succeeded(task, task.answer)
    assert (slow.name, slow.tasks, slow.examples) == ("slow", known.tasks, known.examples)
    assert slow.tool(task.tool) == known.tool(task.tool)


def test_health_needs_nothing(second: Running) -> None:
    assert second.get("/health").json() == {"status": "ok"}


def test_what_is_not_there_and_what_is_no_json(second: Running) -> None:
    assert "POST /agent" in error_of(second.get("/v1/completions"), 404)["message"]
    error_of(second.get("/agent"), 405)
    text = {"content": json.dumps(SHORT), "headers": {"Content-Type": "text/plain"}}
    assert "text/plain" in error_of(second.post("/v1/chat/completions", **text), 415)["message"]


def test_a_body_beyond_the_limit_is_refused_however_it_is_sent(second: Running) -> None:
    body = json.dumps({**SHORT, "user": "x" * 1000}).encode()
    kind = {"Content-Type": "application/json"}
    for content in (body, iter([body[:500], body[500:]])):
        error_of(second.post("/v1/chat/completions", content=content, headers=kind), 413)
    assert second.post("/v1/chat/completions", json={**SHORT, "user": "x" * 500}).status_code == 200


def test_more_requests_than_there_is_room_for_are_told_to_come_back(second: Running) -> None:
    second.hold.clear()
    with ThreadPoolExecutor(2) as clients:
        inside = [clients.submit(second.post, "/v1/chat/completions", json=SHORT) for _ in range(2)]
        until(lambda: second.pending == 2)
        response = second.post("/agent", json={"question": "x"})
        assert error_of(response, 429)["code"] == "rate_limit_exceeded"
        assert int(response.headers["Retry-After"]) >= 1
        with pytest.raises(openai.RateLimitError):
            second.client().chat.completions.create(**SHORT)
        assert second.get("/v1/models").status_code == 200
        second.hold.set()
        assert [each.result().status_code for each in inside] == [200, 200]
    assert second.client(retries=2).chat.completions.create(**SHORT).choices, "there is room again"


def test_a_request_is_given_up_after_its_time(served: Served) -> None:
    with running(served, Limits(timeout=0.3)) as server:
        server.hold.clear()
        response = server.post("/v1/chat/completions", json=LONG)
        assert error_of(response, 504)["code"] == "timeout"
        assert response.headers["x-should-retry"] == "false"
        assert error_of(server.post("/agent", json={"question": "What is 1 + 1?"}), 504)["code"] == "timeout"
        with pytest.raises(openai.APIError, match="time limit"):
            list(server.client().chat.completions.create(**LONG, stream=True))
        server.hold.set()
        calls = len(server.calls)
        assert server.post("/v1/chat/completions", json=SHORT).status_code == 200
        assert len(server.calls) - calls <= 3, "what was given up is not computed to its end"


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_takes_its_request_along(stream: bool, served: Served) -> None:
    with running(served) as server:
        server.hold.clear()
        body = {**LONG, "stream": stream}
        if stream:
            with server.http.stream("POST", "/v1/chat/completions", json=body) as response:
                assert next(response.iter_lines()).startswith("data: ")
        else:
            with pytest.raises(httpx.ReadTimeout):
                server.post("/v1/chat/completions", json=body, timeout=0.3)
        time.sleep(0.2)
        server.hold.set()
        assert server.post("/v1/chat/completions", json=SHORT).status_code == 200
        assert len(server.calls) < 400 / SLICE / 4


def test_an_api_key_is_asked_for_everywhere_but_at_health(served: Served) -> None:
    with running(served, api_key="s3cret") as server:
        assert server.client("s3cret").chat.completions.create(**SHORT).choices
        assert [model.id for model in server.client("s3cret").models.list()][-1] == "agent"
        for key in ("s3cre", "s3cret!", "S3CRET"):
            with pytest.raises(openai.AuthenticationError):
                server.client(key).models.list()
        assert error_of(server.post("/agent", json={"question": "x"}), 401)["code"] == "invalid_api_key"
        for value in ("s3cret", "Basic s3cret", "Bearer", b"Bearer \xff"):
            error_of(server.get("/v1/models", headers={"Authorization": value}), 401)
        assert server.get("/health").status_code == 200


def test_on_loopback_only_loopback_s_names_are_answered(second: Running, served: Served) -> None:
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8"):
        assert second.get("/health", headers={"Host": host}).status_code == 200
    for host in ("example.org", "example.org:8000", "localhost.example.org", "", "[::2]"):
        assert error_of(second.get("/health", headers={"Host": host}), 403)["code"] == "host_not_allowed"
    with running(served, loopback=False) as server:
        assert server.get("/health", headers={"Host": "example.org"}).status_code == 200


def test_a_page_in_a_browser_gets_no_permission(second: Running) -> None:
    asked = {"Origin": "http://example.org", "Access-Control-Request-Method": "POST"}
    response = second.http.options("/agent", headers=asked)
    assert response.status_code == 405
    assert not [name for name in response.headers if name.startswith("access-control")]


VALUES = st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=8)
ROLES = st.sampled_from(["user", "system", "assistant", "developer", "tool", "x"])
CONTENTS = st.text(max_size=30) | st.sampled_from(["<|end|>", "<|assistant|>", "\x00", "é€😀"]) | VALUES
CHATS = st.lists(st.fixed_dictionaries({"role": ROLES, "content": CONTENTS}), max_size=3) | VALUES
BODIES = st.fixed_dictionaries(
    {"model": st.sampled_from(["planner", "base", "agent", "nope"]), "messages": CHATS},
    optional={
        "max_tokens": st.integers(-1, 6) | VALUES,
        "stop": st.lists(st.text(max_size=3), max_size=3) | VALUES,
        "stream": st.booleans() | VALUES,
        "temperature": VALUES,
        "seed": VALUES,
        "n": VALUES,
        "question": st.text(max_size=20) | VALUES,
        "which": st.sampled_from(["both", "tuned"]) | VALUES,
    },
)


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(body=BODIES.map(json.dumps).map(str.encode) | st.binary(max_size=60), path=st.booleans())
def test_no_body_breaks_the_server(second: Running, body: bytes, path: bool) -> None:
    response = second.post(
        "/v1/chat/completions" if path else "/agent", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code in (200, 400, 404, 413)
    if response.status_code != 200:
        error_of(response, response.status_code)
    elif response.headers["content-type"].startswith("text/event-stream"):
        assert response.text.endswith("data: [DONE]\n\n")
        assert '"error"' not in response.text
