"""The whole agent on a free question: its own scheduler, whose batches go to the engine thread everyone shares."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from queue import SimpleQueue

from nograd.agent.scheduler import Rollout, Scheduler
from nograd.agent.trajectory import Trajectory
from nograd.llm.requests import Completion, CompletionRequest, EngineCounts, Finish, Request, Result
from nograd.serve.api_error import ApiError, too_long
from nograd.serve.completion import Usage
from nograd.serve.deadline import in_time
from nograd.serve.engine_thread import EngineThread, Update
from nograd.serve.served import WholeAgent
from nograd.tasks.family import Task


class SharedEngine:
    """A `RequestEngine` for one scheduler: `run` waits, in the scheduler's own thread, for the engine thread."""

    def __init__(self, engine: EngineThread) -> None:
        self.counts = EngineCounts()
        self.usage = Usage(0, 0)
        self._engine = engine
        self._updates: SimpleQueue[tuple[int, Update]] = SimpleQueue()

    def forget(self) -> None:
        """Nothing is kept here; the engine's prefixes are everyone's."""

    def run(self, requests: Sequence[Request]) -> list[Result]:
        """Results in the order of the requests. Raises ApiError for a prompt that is too long, and after `cancel`."""
        asked = [request for request in requests if isinstance(request, CompletionRequest)]
        assert len(asked) == len(requests), "nothing is scored where there is no gold answer"
        jobs = [self._engine.submit(request, partial(self._put, index)) for index, request in enumerate(asked)]
        try:
            results = self._collect(asked)
        finally:
            for job in jobs:
                job.cancel()
        self.usage = Usage(
            self.usage.prompt + sum(len(request.prompt) for request in asked),
            self.usage.completion + sum(len(result.tokens) for result in results),
        )
        return list(results)

    def cancel(self) -> None:
        """Make `run` raise, now or when it is called next; from any thread."""
        self._put(-1, ApiError(504, "the question was given up", code="timeout"))

    def _put(self, index: int, update: Update) -> None:
        self._updates.put((index, update))

    def _collect(self, requests: Sequence[CompletionRequest]) -> list[Completion]:
        tokens: list[tuple[int, ...]] = [()] * len(requests)
        finish: dict[int, Finish] = {}
        while len(finish) < len(requests):
            index, update = self._updates.get()
            if isinstance(update, Exception):
                raise update
            tokens[index] += update.tokens
            if update.finish == "too_long":
                raise too_long(self._engine.positions, len(requests[index].prompt), requests[index].max_tokens)
            if update.finish is not None:
                finish[index] = update.finish
        return [Completion(tokens[index], finish[index]) for index in range(len(requests))]


async def ask_agent(
    whole: WholeAgent,
    engine: EngineThread,
    threads: Executor,
    task: Task,
    which: Sequence[str],
    deadline: float,
) -> tuple[dict[str, Trajectory], Usage]:
    """The agents' trajectories on a task by name ("tuned", "untouched"), and the tokens of all their requests.

    The agents run together: what both ask is computed once."""
    shared = SharedEngine(engine)
    scheduler = Scheduler(shared, whole.chat, whole.stages)
    rollouts = [Rollout(partial(whole.agent, task), whole.thetas[name], task.id) for name in which]
    running = asyncio.get_running_loop().run_in_executor(threads, scheduler.run, rollouts)
    try:
        async with in_time(deadline):
            trajectories = await running
    finally:
        shared.cancel()
    return dict(zip(which, trajectories, strict=True)), shared.usage
