"""The local executor: one run after the other in this process, or several at a time in worker processes."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from nograd.study.work import Build, Event, Job, OnEvent, SharedEvaluators, attempt

PATIENCE = 10.0
"""Seconds that a worker has to end before it is killed; its run directory survives either."""


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: Connection
    job: Job | None = None


class LocalExecutor:
    """workers: runs at a time; 1 works in this process. retries: further attempts after a worker died."""

    def __init__(self, workers: int = 1, retries: int = 2) -> None:
        self.workers = workers
        self.retries = retries

    def execute(self, jobs: Sequence[Job], build: Build, on_event: OnEvent) -> None:
        """See `executors.Executor`."""
        if self.workers > 1:
            _Pool(jobs, build, on_event, self.retries).work(min(self.workers, len(jobs)))
            return
        shared = SharedEvaluators(build)
        for job in jobs:
            attempt(job, shared, on_event)


class _Pool:
    """Worker processes that take one job at a time; a dead one is replaced."""

    def __init__(self, jobs: Sequence[Job], build: Build, on_event: OnEvent, retries: int) -> None:
        self._waiting = deque(jobs)
        self._deaths = {job.cell.name: 0 for job in jobs}
        self._build = build
        self._on_event = on_event
        self._retries = retries
        self._workers: list[_Worker] = []

    def work(self, count: int) -> None:
        try:
            for _ in range(count):
                self._hire()
            while busy := {worker.pipe: worker for worker in self._workers if worker.job is not None}:
                for pipe in wait(list(busy)):
                    self._listen(busy[pipe])  # type: ignore[index]
        finally:
            for worker in self._workers:
                _dismiss(worker)

    def _hire(self) -> None:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._build), daemon=True)
        with _interrupts_held():
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        self._assign(worker)

    def _assign(self, worker: _Worker) -> None:
        worker.job = self._waiting.popleft() if self._waiting else None
        if worker.job is not None:
            try:
                worker.pipe.send(worker.job)
            except OSError:
                self._bury(worker, worker.job)

    def _listen(self, worker: _Worker) -> None:
        job = worker.job
        if job is None:
            return
        try:
            event: Event = worker.pipe.recv()
        except (EOFError, OSError):
            self._bury(worker, job)
            return
        if event.final:
            self._assign(worker)
        self._on_event(event)

    def _bury(self, worker: _Worker, job: Job) -> None:
        """A worker died: its job goes to the front of the queue, or is given up; a new worker takes over."""
        _dismiss(worker)
        self._workers.remove(worker)
        name = job.cell.name
        self._deaths[name] += 1
        end = f"its worker ended unexpectedly (exit status {worker.process.exitcode})"
        if self._deaths[name] <= self._retries:
            self._waiting.appendleft(job)
            self._on_event(Event(name, "retry", text=end))
        else:
            text = f"{end}, {self._deaths[name]} times; look for a lack of memory, then resume the sweep"
            self._on_event(Event(name, "failed", text=text))
        if self._waiting:
            self._hire()


def _dismiss(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.terminate()
    worker.process.join(PATIENCE)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process started meanwhile never sees Ctrl-C, which is the parent's to handle; the parent sees it
    afterwards. The resource tracker must run before, as starting it would let interrupts through."""
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Connection, build: Build) -> None:
    """Main function of a worker process. When the parent is gone, so is the pipe, and the worker ends."""
    shared = SharedEvaluators(build)
    try:
        while True:
            attempt(pipe.recv(), shared, pipe.send)
    except (EOFError, OSError):
        return
