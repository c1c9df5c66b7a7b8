"""Runs all rollouts at once: collects what they ask until every one of them waits, then asks the engine once.

An agent is an async function; its only way to a language model is the `Llm` handle it is given. Under greedy
decoding an answer is a function of (stage, that stage's θ, messages, limit), so each distinct request of a
generation is computed once and served to everyone else from a table (DESIGN §3.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from nograd.errors import unknown_name
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
_QUIET_TICKS = 3


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
    """One agent run to be made: `start` gets its handle; theta: float32 [modules, size]."""

    start: Callable[[Llm], Awaitable[T]]
    theta: NDArray[np.float32]


class Llm:
    """An agent's way to the model, under one candidate's coefficients."""

    def __init__(self, scheduler: Scheduler, theta: NDArray[np.float32]) -> None:
        self._scheduler = scheduler
        self._thetas = [np.ascontiguousarray(row, dtype=np.float32).tobytes() for row in theta]
        self.waiting = 0

    async def complete(self, stage: str, messages: Messages, *, max_tokens: int = 32) -> Reply:
        """The stage's greedy completion of a chat. Raises ConfigError for an unknown stage."""
        module = self._scheduler.module(stage)
        prompt = self._scheduler.encode(messages)
        result = await self._ask(CompletionRequest(module, self._thetas[module], prompt, max_tokens))
        assert isinstance(result, Completion)
        return Reply(self._scheduler.chat.decode(result.tokens), result.finish)

    async def score(self, stage: str, messages: Messages, target: str) -> float:
        """Mean log-probability per token of `target` as the stage's completion; nan if it is too long."""
        module = self._scheduler.module(stage)
        tokens = tuple(self._scheduler.chat.encode_text(target))
        prompt = self._scheduler.encode(messages)
        result = await self._ask(ScoreRequest(module, self._thetas[module], prompt, tokens))
        assert isinstance(result, Score)
        return result.mean

    async def _ask(self, request: Request) -> Result:
        self.waiting += 1
        try:
            return await self._scheduler.ask(request)
        finally:
            self.waiting -= 1


class Scheduler:
    """One table of requests per generation; `run` may be called several times before `forget`."""

    def __init__(self, engine: RequestEngine, chat: ChatTokenizer, stages: Sequence[str]) -> None:
        self.engine = engine
        self.chat = chat
        self.stages = {stage: index for index, stage in enumerate(stages)}
        self.counts = RequestCounts()
        self._prompts: dict[tuple[Message, ...], tuple[int, ...]] = {}
        self._table: dict[Request, asyncio.Future[Result]] = {}
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
        """The results of all rollouts, in their order. The first exception of a rollout is raised."""
        return asyncio.run(self._run(rollouts))

    async def ask(self, request: Request) -> Result:
        """The result of a request, computed once."""
        self.counts.asked += 1
        if request in self._results:
            return self._results[request]
        if request not in self._table:
            self._table[request] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._table[request])

    async def _run(self, rollouts: Sequence[Rollout[T]]) -> list[T]:
        handles = [Llm(self, rollout.theta) for rollout in rollouts]
        tasks = [
            asyncio.ensure_future(rollout.start(handle))
            for rollout, handle in zip(rollouts, handles, strict=True)
        ]
        try:
            while not all(task.done() for task in tasks):
                await self._until_all_wait(tasks, handles)
                self._flush()
            return [await task for task in tasks]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._table.clear()

    async def _until_all_wait(self, tasks: Sequence[asyncio.Future[T]], handles: Sequence[Llm]) -> None:
        """Return once every live rollout has asked and nothing new was asked for a few turns of the loop."""
        quiet, asked = 0, -1
        while quiet < _QUIET_TICKS:
            failed = next((t for t in tasks if t.done() and not t.cancelled() and t.exception()), None)
            if failed is not None:
                await failed
            idle = [
                t for t, handle in zip(tasks, handles, strict=True) if not t.done() and not handle.waiting
            ]
            if idle:
                await self._progress(idle)
                quiet = 0
                continue
            quiet = quiet + 1 if self.counts.asked == asked else 0
            asked = self.counts.asked
            await asyncio.sleep(0)

    @staticmethod
    async def _progress(idle: Sequence[asyncio.Future[T]]) -> None:
        """Let rollouts go on that are at work outside the engine (tools, own I/O) without a busy loop."""
        for _ in range(_QUIET_TICKS):
            await asyncio.sleep(0)
        if not any(task.done() for task in idle):
            await asyncio.wait(idle, timeout=0.001, return_when=asyncio.FIRST_COMPLETED)

    def _flush(self) -> None:
        """Hand all waiting requests to the engine as one batch."""
        if not self._table:
            return
        requests = list(self._table)
        self.counts.computed += len(requests)
        for request, result in zip(requests, self.engine.run(requests), strict=True):
            self._results[request] = result
            future = self._table.pop(request)
            if not future.cancelled():
                future.set_result(result)
