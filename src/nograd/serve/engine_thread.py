"""The one thread that runs the engine: whatever waits when a slice begins shares its forward passes.

A completion is computed in slices of a few tokens, each an engine request that goes on where the last one ended
(its prefix is in the engine's cache). Between slices new requests join, and finished or abandoned ones leave.
Where an answer does not depend on company (DESIGN §3.4), the tokens are the bits of one uninterrupted request.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from nograd.llm.engine import Engine
from nograd.llm.pages import pages_for
from nograd.llm.requests import Completion, CompletionRequest, Finish
from nograd.run.build_agent import set_threads
from nograd.serve.api_error import ApiError

SLICE = 4
"""Tokens per slice: the grain of streaming. Each slice costs one pass more than decoding on would."""
_SPARE_PAGES = 8
"""Beyond a request's own tokens: copies of partly filled pages, and the rounding of a slice."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """The tokens of a slice. finish: how the completion ended, None if it goes on."""

    tokens: tuple[int, ...]
    finish: Finish | None


Update = Progress | Exception
Listener = Callable[[Update], None]
"""Called in the engine thread after each slice; an exception is the last update."""


class Job:
    """A completion under way. `cancel` may be called from any thread: no further slice is computed."""

    def __init__(self, request: CompletionRequest, listener: Listener) -> None:
        self.request, self.listener = request, listener
        self.tokens: tuple[int, ...] = ()
        self.ended = False

    @property
    def pages(self) -> int:
        """Pages of the cache that it needs at most."""
        return pages_for(len(self.request.prompt) + self.request.max_tokens) + _SPARE_PAGES

    def cancel(self) -> None:
        self.ended = True

    def slice(self) -> CompletionRequest:
        """The engine request of the next slice."""
        left = self.request.max_tokens - len(self.tokens)
        return replace(self.request, prompt=self.request.prompt + self.tokens, max_tokens=min(SLICE, left))

    def advance(self, completion: Completion) -> None:
        """Take a slice's result."""
        self.tokens += completion.tokens
        more = completion.finish == "length" and len(self.tokens) < self.request.max_tokens
        self.tell(Progress(completion.tokens, None if more else completion.finish))

    def tell(self, update: Update) -> None:
        """Pass an update on, unless nobody waits for it any more."""
        if not self.ended:
            self.ended = isinstance(update, Exception) or update.finish is not None
            self.listener(update)


class EngineThread:
    """Owns an engine from `start` to `stop`. threads: for the passes, None keeps the library's choice."""

    def __init__(self, engine: Engine, threads: int | None = None) -> None:
        self.engine = engine
        self.positions = engine.transformer.architecture.max_positions
        self._threads = threads
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, patience: float) -> None:
        """End after the current slice, and wait so many seconds for that; what is under way fails with 503."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(patience)

    def submit(self, request: CompletionRequest, listener: Listener) -> Job:
        """Queue a completion, from any thread. As in the engine, one that does not fit is "too_long" at once."""
        job = Job(request, listener)
        if len(request.prompt) + request.max_tokens > self.positions:
            job.tell(Progress((), "too_long"))
            return job
        with self._changed:
            if self._stopping:
                job.tell(_stopped())
            else:
                self._waiting.append(job)
                self._changed.notify()
        return job

    def _work(self) -> None:
        set_threads(self._threads)  # of this thread: both torch and numba keep the number by thread
        active: list[Job] = []
        while not self._stopping:
            active = self._admit(active)
            if active:
                self._slice(active)
        for job in (*active, *self._waiting):
            job.tell(_stopped())

    def _admit(self, active: list[Job]) -> list[Job]:
        """The jobs of the next slice: those under way, then the waiting ones in order, as many as the cache
        holds together. Sleeps while there are none."""
        going = [job for job in active if not job.ended]
        with self._changed:
            while not (going or self._waiting or self._stopping):
                self._changed.wait()
            free = self.engine.pool.capacity - sum(job.pages for job in going)
            while self._waiting and (self._waiting[0].pages <= free or not going):
                job = self._waiting.popleft()
                if not job.ended:
                    going.append(job)
                    free -= job.pages
        return going

    def _slice(self, jobs: list[Job]) -> None:
        try:
            results = self.engine.run([job.slice() for job in jobs])
        except Exception as error:
            _log.exception("the engine failed on %d requests", len(jobs))
            for job in jobs:
                job.tell(error)
            return
        for job, result in zip(jobs, results, strict=True):
            assert isinstance(result, Completion)
            job.advance(result)


def _stopped() -> ApiError:
    return ApiError(503, "the server is shutting down", code="shutting_down")
