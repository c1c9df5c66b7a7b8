"""Remembers what was asked of an engine: nothing is computed twice, and requests can be read afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.scheduler import Scheduler
from nograd.llm.requests import EngineCounts, Request, RequestEngine, Result


class Memory:
    """A request engine in front of another. results: everything that was asked, in order, with its answer."""

    def __init__(self, engine: RequestEngine) -> None:
        self.engine = engine
        self.results: dict[Request, Result] = {}

    @property
    def counts(self) -> EngineCounts:
        """Of the engine behind."""
        return self.engine.counts

    def run(self, requests: Sequence[Request]) -> list[Result]:
        """Results in the order of the requests."""
        new = [request for request in dict.fromkeys(requests) if request not in self.results]
        self.results.update(zip(new, self.engine.run(new), strict=True))
        return [self.results[request] for request in requests]

    def forget(self) -> None:
        """Passed on; what is remembered stays."""
        self.engine.forget()


def remembering(evaluator: AgentEvaluator) -> tuple[AgentEvaluator, Memory]:
    """The same evaluator on the same engine, and a memory of what it asks from now on."""
    scheduler = evaluator.scheduler
    memory = Memory(scheduler.engine)
    listening = copy(evaluator)
    listening.scheduler = Scheduler(memory, scheduler.chat, tuple(scheduler.stages))
    return listening, memory
