"""Runs all rollouts at once: collects what they ask until every one of them waits, then asks the engine once.

An agent is an async function; its only way to a language model is the `Llm` handle it is given. Under greedy
decoding an answer is a function of (stage, that stage's θ, messages, limit), so each distinct request of a
generation is computed once and served to everyone else from a table (DESIGN §3.2).

A batch is handed over only when no rollout waits for anything but the engine: tools, timers, sockets and threads
are waited for, so that a batch depends on what the agents ask and not on how long their tools take. A race that an
agent runs itself (a time-out, the first of several) remains one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from nograd.agent.waiting import RolloutLoop, place
from nograd.errors import RunError, unknown_name
from nograd.llm.chat import ChatTokenizer, Message
from nograd.llm.requests import (
    Completion,
    CompletionRequest,
    Finish,
    Request,
    RequestEngine,
    Result,
    Score,
    ScoreRequest,
)

T = TypeVar("T")
Messages = Sequence[Message]
IO_TIMEOUT = 600.0
"""Seconds that all rollouts may wait for the outside while none of them asks for anything or ends."""


@dataclass(frozen=True)
class Reply:
    """A completion as text. finish: "stop", "length" or "too_long" (then text is empty)."""

    text: str
    finish: Finish


@dataclass
class RequestCounts:
    """asked: requests made by rollouts; computed: distinct ones, which reached the engine."""

    asked: int = 0
    computed: int = 0


@dataclass(frozen=True)
class Rollout(Generic[T]):
    """One agent run to be made: `start` gets its handle; theta: float32 [modules, size]. task: the id of its
    task, for messages."""

    start: Callable[[Llm], Awaitable[T]]
    theta: NDArray[np.float32]
    task: str = ""


class Llm:
    """An agent's way to the model, under one candidate's coefficients."""

    def __init__(self, scheduler: Scheduler, theta: NDArray[np.float32]) -> None:
        self._scheduler = scheduler
        self._thetas = [np.ascontiguousarray(row, dtype=np.float32).tobytes() for row in theta]
        self.stage = ""
        """The stage that was asked last."""

    async def complete(self, stage: str, messages: Messages, *, max_tokens: int = 32) -> Reply:
        """The stage's greedy completion of a chat. Raises ConfigError for an unknown stage."""
        module, prompt = self._address(stage, messages)
        result = await self._scheduler.ask(CompletionRequest(module, self._thetas[module], prompt, max_tokens))
        assert isinstance(result, Completion)
        return Reply(self._scheduler.chat.decode(result.tokens), result.finish)

    async def score(self, stage: str, messages: Messages, target: str) -> float:
        """Mean log-probability per token of `target` as the stage's completion; nan if it is too long."""
        module, prompt = self._address(stage, messages)
        tokens = tuple(self._scheduler.chat.encode_text(target))
        result = await self._scheduler.ask(ScoreRequest(module, self._thetas[module], prompt, tokens))
        assert isinstance(result, Score)
        return result.mean

    def _address(self, stage: str, messages: Messages) -> tuple[int, tuple[int, ...]]:
        module = self._scheduler.module(stage)
        self.stage = stage
        return module, self._scheduler.encode(messages)


class Scheduler:
    """One table of requests per generation; `run` may be called several times before `forget`.

    io_timeout: seconds that all rollouts may wait for the outside while none asks for anything or ends."""

    def __init__(
        self,
        engine: RequestEngine,
        chat: ChatTokenizer,
        stages: Sequence[str],
        io_timeout: float = IO_TIMEOUT,
    ) -> None:
        self.engine = engine
        self.chat = chat
        self.stages = {stage: index for index, stage in enumerate(stages)}
        self.io_timeout = io_timeout
        self.counts = RequestCounts()
        self._prompts: dict[tuple[Message, ...], tuple[int, ...]] = {}
        self._table: dict[Request, list[asyncio.Future[Result]]] = {}
        self._results: dict[Request, Result] = {}

    def forget(self) -> None:
        """Start a new generation: empty table, no cached prefixes, counts at zero."""
        self._results.clear()
        self._prompts.clear()
        self.counts = RequestCounts()
        self.engine.forget()

    def module(self, stage: str) -> int:
        """Index of a stage."""
        if stage not in self.stages:
            raise unknown_name("stage", stage, self.stages)
        return self.stages[stage]

    def encode(self, messages: Messages) -> tuple[int, ...]:
        """Token ids of a chat that awaits an answer."""
        key = tuple(messages)
        if key not in self._prompts:
            self._prompts[key] = tuple(self.chat.encode_chat(key))
        return self._prompts[key]

    def run(self, rollouts: Sequence[Rollout[T]]) -> list[T]:
        """The results of all rollouts, in their order. The first exception of a rollout is raised, with a note
        that names its task and stage. Raises RunError if nothing happens for `io_timeout`."""
        with asyncio.Runner(loop_factory=RolloutLoop) as runner:
            return runner.run(self._run(rollouts))

    async def ask(self, request: Request) -> Result:
        """The result of a request, computed once."""
        self.counts.asked += 1
        if request in self._results:
            return self._results[request]
        answer = _loop().create_answer()
        self._table.setdefault(request, []).append(answer)
        result: Result = await answer
        return result

    async def _run(self, rollouts: Sequence[Rollout[T]]) -> list[T]:
        handles = [Llm(self, rollout.theta) for rollout in rollouts]
        tasks = [
            asyncio.create_task(_noted(rollout, handle), name=f"rollout of task {rollout.task!r}")
            for rollout, handle in zip(rollouts, handles, strict=True)
        ]
        try:
            while not all(task.done() for task in tasks):
                await self._until_all_wait(tasks)
                self._flush()
            return [await task for task in tasks]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._table.clear()

    async def _until_all_wait(self, tasks: Sequence[asyncio.Task[T]]) -> None:
        """Return once every live rollout waits for the engine alone, or all have ended."""
        loop, before, since = _loop(), None, time.monotonic()
        while True:
            await asyncio.sleep(0)
            for task in tasks:
                _check(task)
            live = [task for task in tasks if not task.done()]
            now = (self.counts.asked, len(live))
            if now != before:
                before, since = now, time.monotonic()
            left = since + self.io_timeout - time.monotonic()
            if left > 0 and not loop.quiet:
                continue
            outside = loop.outside(live)
            if not live or (self._table and not outside):
                return
            if left <= 0:
                raise self._stuck(outside, live)
            await _anything(outside, left)

    def _stuck(self, outside: set[asyncio.Future[Any]], live: Sequence[asyncio.Task[T]]) -> RunError:
        places = sorted({place(future, asyncio.all_tasks()) for future in outside} - {""})
        return RunError(
            f"nothing has happened for {self.io_timeout:g} s: {len(live)} rollouts wait for "
            f"{' and '.join(places[:3]) or 'one another'}, the first is the {live[0].get_name()}; give the tools "
            f"time-outs of their own, or raise io_timeout"
        )

    def _flush(self) -> None:
        """Hand all waiting requests to the engine as one batch, in an order of their own."""
        requests = sorted(self._table, key=_order)
        if not requests:
            return
        self.counts.computed += len(requests)
        loop, start = _loop(), time.monotonic()
        results = self.engine.run(requests)
        loop.frozen_seconds += time.monotonic() - start
        for request, result in zip(requests, results, strict=True):
            self._results[request] = result
            for answer in self._table.pop(request):
                if not answer.done():
                    answer.set_result(result)


async def _noted(rollout: Rollout[T], handle: Llm) -> T:
    """The rollout's result; an exception gets a note that says where it comes from."""
    try:
        return await rollout.start(handle)
    except Exception as error:
        last = f", after stage {handle.stage!r} was asked" if handle.stage else ", before any stage was asked"
        error.add_note(f"nograd: in the rollout of task {rollout.task!r}{last}")
        raise


def _check(task: asyncio.Task[T]) -> None:
    """Raise what ended the task, if it has failed."""
    if task.cancelled():
        raise RunError(f"the {task.get_name()} cancelled itself; an agent must return or raise an error")
    if task.done():
        task.result()


async def _anything(outside: set[asyncio.Future[Any]], seconds: float) -> None:
    """Wait until one of these is there, or a moment where none is: what then comes (a time-out in a queue's
    `get`) has no future of its own."""
    if outside:
        await asyncio.wait(outside, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    else:
        await asyncio.sleep(min(seconds, 0.01))


def _loop() -> RolloutLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, RolloutLoop), "the engine is asked from rollouts only"
    return loop


def _order(request: Request) -> tuple[Any, ...]:
    """A total order that does not depend on who asked first."""
    limit = request.max_tokens if isinstance(request, CompletionRequest) else 0
    target = request.target if isinstance(request, ScoreRequest) else ()
    return request.module, request.theta, request.prompt, limit, target
