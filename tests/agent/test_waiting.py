"""Batches depend on what agents ask, not on how long their tools take: random agents with and without I/O."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.agent.scheduler import Llm, Rollout, Scheduler
from nograd.errors import RunError
from nograd.llm.chat import Message
from nograd.llm.requests import Request, Result
from tiny_models import save_tiny_chat, tiny_scheduler

ZERO = np.zeros((2, 4), dtype=np.float32)
Agent = Callable[[Llm], Awaitable[Any]]
Outcome = tuple[list[Any], list[list[Request]]]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Scheduler:
    return tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model")), ["first", "second"])


def played(scheduler: Scheduler, agents: Sequence[Agent]) -> Outcome:
    """What the agents return, and the batches that reached the engine."""
    batches: list[list[Request]] = []
    run = scheduler.engine.run

    def recorded(requests: Sequence[Request]) -> list[Result]:
        batches.append(list(requests))
        return run(requests)

    scheduler.forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler.engine, "run", recorded)
        return scheduler.run([Rollout(agent, ZERO, f"t{i}") for i, agent in enumerate(agents)]), batches


async def said(llm: Llm, text: str, stage: str = "first") -> str:
    return (await llm.complete(stage, [Message("user", text)], max_tokens=2)).text


@dataclass(frozen=True)
class Piece:
    """A part of a random agent: `kind` says how its parts run, `seconds` how long its tool takes."""

    kind: str
    parts: tuple[Piece, ...] = ()
    seconds: float = 0.0
    text: str = ""

    async def play(self, llm: Llm, timed: bool, before: str = "") -> str:
        """Text made of all answers. timed: whether tools really wait."""
        outcome: str = await getattr(self, f"_{self.kind}")(llm, timed, before)
        return outcome

    async def _ask(self, llm: Llm, timed: bool, before: str) -> str:
        del timed
        return await said(llm, before[-3:] + self.text, "second" if self.seconds > 0.005 else "first")

    async def _sleep(self, llm: Llm, timed: bool, before: str) -> str:
        del llm, before
        if timed:
            await asyncio.sleep(self.seconds)
        return "s"

    async def _thread(self, llm: Llm, timed: bool, before: str) -> str:
        del llm, before
        if timed:
            await asyncio.to_thread(time.sleep, self.seconds)
        return "t"

    async def _bare_future(self, llm: Llm, timed: bool, before: str) -> str:
        """A thread's future inside asyncio's own helpers, which hide it."""
        del llm, before
        if timed:
            loop = asyncio.get_running_loop()
            await asyncio.wait_for(loop.run_in_executor(None, time.sleep, self.seconds), 30)
            await asyncio.wait({asyncio.shield(loop.run_in_executor(None, time.sleep, self.seconds))})
        return "f"

    async def _socket(self, llm: Llm, timed: bool, before: str) -> str:
        del llm, before
        if timed:
            ours, theirs = socket.socketpair()
            threading.Timer(self.seconds, lambda: (theirs.send(b"x\n"), theirs.close())).start()
            reader, writer = await asyncio.open_connection(sock=ours)
            await reader.readline()
            writer.close()
        return "c"

    async def _turns(self, llm: Llm, timed: bool, before: str) -> str:
        """Nothing from outside, but some turns of the loop."""
        del llm, before
        for _ in range(9 if timed else 0):
            await asyncio.sleep(0)
        return "y"

    async def _limited(self, llm: Llm, timed: bool, before: str) -> str:
        """Tools that may not all run at once."""
        gate = asyncio.Semaphore(1)

        async def one(piece: Piece) -> str:
            async with gate:
                return await piece._sleep(llm, timed, before)

        return "".join(await asyncio.gather(*map(one, self.parts or (self, self))))

    async def _seq(self, llm: Llm, timed: bool, before: str) -> str:
        for part in self.parts:
            before += await part.play(llm, timed, before)
        return before

    async def _gather(self, llm: Llm, timed: bool, before: str) -> str:
        return "".join(await asyncio.gather(*(part.play(llm, timed, before) for part in self.parts)))

    async def _group(self, llm: Llm, timed: bool, before: str) -> str:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part.play(llm, timed, before)) for part in self.parts]
        return "".join(task.result() for task in tasks)

    async def _overlap(self, llm: Llm, timed: bool, before: str) -> str:
        """A tool of its own while sub-agents are at work."""
        beside = asyncio.create_task(self._gather(llm, timed, before))
        own = await self._sleep(llm, timed, before)
        return own + await asyncio.shield(beside)

    async def _queue(self, llm: Llm, timed: bool, before: str) -> str:
        """Sub-agents that hand their results to one that collects them."""
        queue: asyncio.Queue[tuple[int, str]] = asyncio.Queue()

        async def produce(index: int, part: Piece) -> None:
            await queue.put((index, await part.play(llm, timed, before)))

        producing = [asyncio.create_task(produce(i, part)) for i, part in enumerate(self.parts)]
        found = dict([await queue.get() for _ in producing])
        return await said(llm, "".join(found[i] for i in range(len(producing)))[-4:])

    async def _patient(self, llm: Llm, timed: bool, before: str) -> str:
        async with asyncio.timeout(60):
            return await asyncio.wait_for(self._seq(llm, timed, before), 60)


SECONDS = st.floats(0, 0.01)
LEAVES = st.one_of(
    st.builds(Piece, st.just("ask"), seconds=SECONDS, text=st.sampled_from("abc")),
    st.builds(Piece, st.just("ask"), seconds=SECONDS, text=st.sampled_from("abc")),
    st.builds(
        Piece,
        st.sampled_from(["turns", "sleep", "thread", "bare_future", "socket", "limited"]),
        seconds=SECONDS,
    ),
)
PIECES = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        Piece,
        st.sampled_from(["seq", "seq", "gather", "group", "overlap", "queue", "patient"]),
        st.lists(inner, min_size=1, max_size=4).map(tuple),
        SECONDS,
    ),
    max_leaves=10,
)


@given(pieces=st.lists(PIECES, min_size=1, max_size=5))
@settings(deadline=None, max_examples=20)
def test_io_changes_neither_results_nor_batches(scheduler: Scheduler, pieces: list[Piece]) -> None:
    def agents(timed: bool) -> list[Agent]:
        return [lambda llm, piece=piece: piece.play(llm, timed) for piece in pieces]  # type: ignore[misc]

    assert played(scheduler, agents(True)) == played(scheduler, agents(False))


@pytest.mark.parametrize("kind", ["turns", "sleep", "thread", "bare_future", "socket", "limited"])
def test_a_batch_waits_for_the_slowest_branch(scheduler: Scheduler, kind: str) -> None:
    async def agent(llm: Llm) -> object:
        async def slow() -> str:
            await Piece(kind, seconds=0.05).play(llm, timed=True)
            return await said(llm, "b")

        return await asyncio.gather(said(llm, "a"), slow())

    _, batches = played(scheduler, [agent])
    assert [len(batch) for batch in batches] == [2]


def test_a_service_beside_the_rollout_holds_nothing_up(scheduler: Scheduler) -> None:
    """A connection's reader waits for the outside all the time; the agent itself does not."""

    async def agent(llm: Llm) -> object:
        reader = asyncio.create_task(asyncio.sleep(3600))
        try:
            return await said(llm, await said(llm, "a"))
        finally:
            reader.cancel()

    start = time.monotonic()
    _, batches = played(scheduler, [agent])
    assert [len(batch) for batch in batches] == [1, 1]
    assert time.monotonic() - start < 60


def test_a_slow_engine_is_no_time_to_a_time_out(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def agent(llm: Llm) -> object:
        async with asyncio.timeout(0.2):
            return (await asyncio.gather(said(llm, "a"), said(llm, "b")))[0] + await said(llm, "c")

    expected, _ = played(scheduler, [agent])
    run = scheduler.engine.run

    def slow(requests: Sequence[Request]) -> list[Result]:
        time.sleep(0.3)
        return run(requests)

    monkeypatch.setattr(scheduler.engine, "run", slow)
    scheduler.forget()
    assert scheduler.run([Rollout(agent, ZERO)]) == expected


@pytest.mark.parametrize("kind", ["sleep", "thread", "polling"])
def test_a_tool_that_hangs_is_named(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(scheduler, "io_timeout", 0.1)
    release = threading.Event()

    async def fetch_forever() -> None:
        while kind == "polling" and not release.is_set():
            await asyncio.sleep(0.01)
        await (asyncio.to_thread(release.wait, 60) if kind == "thread" else asyncio.sleep(60))

    async def agent(llm: Llm) -> object:
        await said(llm, "a")
        return await fetch_forever()

    start = time.monotonic()
    with pytest.raises(RunError, match=r"nothing has happened for 0\.1 s: 2 rollouts wait for fetch_forever \(test_w"):
        played(scheduler, [agent, agent])
    assert time.monotonic() - start < 30, "a hanging thread holds up nobody"
    release.set()


def test_an_agent_that_waits_for_itself_is_an_error(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "io_timeout", 0.1)

    async def agent(llm: Llm) -> object:
        del llm
        return await asyncio.Queue[str]().get()

    with pytest.raises(RunError, match=r"1 rollouts wait for one another, the first is the rollout of task 't0'"):
        played(scheduler, [agent])


def test_an_exception_is_noted_with_task_and_stage(scheduler: Scheduler) -> None:
    async def failing(llm: Llm) -> object:
        await said(llm, "a", "second")
        raise KeyError("own mistake")

    async def fine(llm: Llm) -> object:
        return await said(llm, "a")

    with pytest.raises(KeyError, match="own mistake") as caught:
        played(scheduler, [fine, failing])
    assert caught.value.__notes__ == ["nograd: in the rollout of task 't1', after stage 'second' was asked"]


def test_an_agent_that_cancels_itself_is_an_error(scheduler: Scheduler) -> None:
    async def agent(llm: Llm) -> object:
        del llm
        raise asyncio.CancelledError

    with pytest.raises(RunError, match="task 't0' cancelled itself"):
        played(scheduler, [agent])
