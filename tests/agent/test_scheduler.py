"""The scheduler, on a real engine: one batch when all wait, every distinct request once, real concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nograd.agent.scheduler import Llm, Reply, Rollout, Scheduler
from nograd.errors import ConfigError
from nograd.llm.chat import Message
from nograd.llm.requests import CompletionRequest, Request, Result, ScoreRequest
from tiny_models import save_tiny_chat, tiny_scheduler

ZERO = np.zeros((2, 4), dtype=np.float32)
Agent = Callable[[Llm], Awaitable[Any]]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Scheduler:
    return tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model")), ["first", "second"])


@pytest.fixture
def scheduler(shared: Scheduler) -> Scheduler:
    shared.forget()
    return shared


@pytest.fixture
def batches(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> list[list[Request]]:
    """The batches that reach the engine, as they come."""
    seen: list[list[Request]] = []
    run = scheduler.engine.run

    def recorded(requests: Sequence[Request]) -> list[Result]:
        seen.append(list(requests))
        return run(requests)

    monkeypatch.setattr(scheduler.engine, "run", recorded)
    return seen


def user(text: str) -> list[Message]:
    return [Message("user", text)]


def theta(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(2, 4)).astype(np.float32)


def rollouts(agents: Sequence[Agent], coefficients: NDArray[np.float32] = ZERO) -> list[Rollout[Any]]:
    return [Rollout(agent, coefficients) for agent in agents]


def chain(*texts: str) -> Agent:
    """An agent that asks the same stage once for each text, the answer before in front."""

    async def agent(llm: Llm) -> object:
        replies: list[str] = []
        for text in texts:
            reply = await llm.complete("first", user("".join(replies[-1:]) + text), max_tokens=4)
            replies.append(reply.text)
        return replies

    return agent


def test_replies_are_the_engine_s(scheduler: Scheduler) -> None:
    async def agent(llm: Llm) -> object:
        reply = await llm.complete("second", user("hello"), max_tokens=5)
        return reply, await llm.score("second", user("hello"), "yes")

    ((reply, score),) = scheduler.run(rollouts([agent], theta(1)))
    prompt, target = scheduler.encode(user("hello")), tuple(scheduler.chat.encode_text("yes"))
    own = theta(1)[1].tobytes()
    completion, scored = scheduler.engine.run(
        [CompletionRequest(1, own, prompt, 5), ScoreRequest(1, own, prompt, target)]
    )
    assert reply == Reply(scheduler.chat.decode(completion.tokens), completion.finish)  # type: ignore[union-attr]
    assert score == scored.mean  # type: ignore[union-attr]
    assert len(target) == 3
    assert len(completion.tokens) == len(reply.text) == 5  # type: ignore[union-attr]


def test_distinct_requests_are_computed_once(scheduler: Scheduler, batches: list[list[Request]]) -> None:
    agents = [chain("a", "b")] * 5 + [chain("a")] * 3
    found = scheduler.run(rollouts(agents))
    assert found[:5] == [found[0]] * 5
    assert (scheduler.counts.asked, scheduler.counts.computed) == (13, 2)
    assert [len(batch) for batch in batches] == [1, 1]
    scheduler.run(rollouts(agents))
    assert (scheduler.counts.asked, scheduler.counts.computed) == (26, 2), "the table is kept"
    scheduler.forget()
    assert (scheduler.counts.asked, scheduler.counts.computed) == (0, 0)
    assert scheduler.run(rollouts(agents)) == found
    assert scheduler.counts.computed == 2


def test_what_makes_requests_distinct(scheduler: Scheduler) -> None:
    """Stage, that stage's θ, messages, limit; not the θ of other stages."""

    async def agent(llm: Llm) -> object:
        await llm.complete("first", user("a"), max_tokens=3)
        await llm.score("first", user("a"), "x")
        await llm.complete("first", user("a"), max_tokens=2)
        await llm.complete("second", user("a"), max_tokens=3)
        return None

    other = ZERO.copy()
    other[1] = 1
    scheduler.run([Rollout(agent, ZERO), Rollout(agent, other)])
    assert (scheduler.counts.asked, scheduler.counts.computed) == (8, 5)


def test_all_that_wait_go_in_one_batch(scheduler: Scheduler, batches: list[list[Request]]) -> None:
    """Rollouts of different lengths: round by round, those that are done drop out."""
    agents = [chain(*(f"{i}{step}" for step in range(length))) for i, length in enumerate((1, 4, 2, 4))]
    found = scheduler.run(rollouts(agents))
    assert [len(replies) for replies in found] == [1, 4, 2, 4]
    assert [len(batch) for batch in batches] == [4, 3, 2, 2]


def test_gather_within_an_agent_is_one_batch(scheduler: Scheduler, batches: list[list[Request]]) -> None:
    async def agent(llm: Llm) -> object:
        async def nested(text: str) -> list[Reply]:
            asked = [llm.complete("first", user(text + x), max_tokens=2) for x in "xy"]
            return await asyncio.gather(*asked)

        await asyncio.gather(nested("a"), nested("b"), llm.score("second", user("c"), "d"))
        return await llm.complete("first", user("last"), max_tokens=2)

    scheduler.run(rollouts([agent, agent]))
    assert [len(batch) for batch in batches] == [5, 1]


def test_tools_that_take_time_do_not_hold_up_or_split_batches(
    scheduler: Scheduler, batches: list[list[Request]]
) -> None:
    """A rollout that is busy elsewhere is waited for; its sleep overlaps with those of others."""

    asleep = most = 0

    async def slow(llm: Llm) -> object:
        nonlocal asleep, most
        asleep += 1
        most = max(most, asleep)
        await asyncio.sleep(0.02)
        asleep -= 1
        reply = await llm.complete("first", user("slow"), max_tokens=2)
        await asyncio.sleep(0.02)
        return reply.text

    found = scheduler.run(rollouts([slow] * 40 + [chain("a", "b")]))
    assert most == 40
    assert len(set(map(str, found))) == 2
    assert [len(batch) for batch in batches] == [2, 1]


def test_work_beside_a_waiting_request_goes_on(scheduler: Scheduler) -> None:
    """An agent that asks and, at the same time, waits for something outside."""

    async def agent(llm: Llm) -> object:
        reply, value = await asyncio.gather(
            llm.complete("first", user("a"), max_tokens=2), asyncio.sleep(0.02, "slept")
        )
        return value, await llm.complete("first", user(reply.text), max_tokens=2)

    ((value, _),) = scheduler.run(rollouts([agent]))
    assert value == "slept"
    assert scheduler.counts.computed == 2


def test_an_agent_that_asks_nothing(scheduler: Scheduler) -> None:
    async def agent(llm: Llm) -> object:
        del llm
        return "done"

    assert scheduler.run(rollouts([agent, agent])) == ["done", "done"]
    assert scheduler.run([]) == []
    assert scheduler.counts.asked == 0


@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_exception_stops_everything_and_leaves_nothing(after: int, scheduler: Scheduler) -> None:
    ended = []

    async def other(llm: Llm) -> object:
        try:
            for step in range(5):
                await llm.complete("first", user(f"{step}"), max_tokens=2)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return None

    async def failing(llm: Llm) -> object:
        for step in range(after):
            await llm.complete("second", user(f"{step}"), max_tokens=2)
        raise KeyError("the agent's own mistake")

    with pytest.raises(KeyError, match="own mistake"):
        scheduler.run(rollouts([other, failing, other]))
    assert ended == ["cancelled"] * 2 or (after == 0 and ended == [])
    scheduler.forget()
    expected = scheduler.run(rollouts([chain("a", "b"), chain("c")]))
    scheduler.forget()
    with pytest.raises(KeyError):
        scheduler.run(rollouts([chain("a", "b"), failing]))
    assert scheduler.run(rollouts([chain("a", "b"), chain("c")])) == expected


def test_an_exception_in_the_engine_reaches_the_caller(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = scheduler.run(rollouts([chain("a", "b")]))
    scheduler.forget()

    def broken(requests: Sequence[Request]) -> list[Result]:
        raise MemoryError(f"{len(requests)} requests")

    with monkeypatch.context() as patch:
        patch.setattr(scheduler.engine, "run", broken)
        with pytest.raises(MemoryError, match="1 requests"):
            scheduler.run(rollouts([chain("a", "b"), chain("a")]))
    scheduler.forget()
    assert scheduler.run(rollouts([chain("a", "b")])) == expected


def test_an_unknown_stage_is_named(scheduler: Scheduler) -> None:
    async def agent(llm: Llm) -> object:
        return await llm.complete("frist", user("a"))

    with pytest.raises(
        ConfigError, match=r"unknown stage 'frist'; did you mean 'first'\? known: first, second"
    ):
        scheduler.run(rollouts([agent]))


def test_results_do_not_depend_on_the_order_of_rollouts(scheduler: Scheduler) -> None:
    all_rollouts = [
        Rollout(chain(*texts), theta(seed))
        for texts in (("a", "b"), ("ab",), ("b", "a", "c"), ("a",))
        for seed in range(4)
    ]
    expected = scheduler.run(all_rollouts)
    counts = scheduler.counts
    assert len({str(replies) for replies in expected}) > 8
    for seed in range(3):
        scheduler.forget()
        order = np.random.default_rng(seed).permutation(len(all_rollouts)).tolist()
        assert scheduler.run([all_rollouts[i] for i in order]) == [expected[i] for i in order]
        assert scheduler.counts == counts


def test_too_long_is_an_empty_reply_and_a_nan_score(scheduler: Scheduler) -> None:
    async def agent(llm: Llm) -> object:
        text = user("x" * 3000)
        return await llm.complete("first", text), await llm.score("first", text, "y")

    ((reply, score),) = scheduler.run(rollouts([agent]))
    assert reply == Reply("", "too_long")
    assert np.isnan(score)
