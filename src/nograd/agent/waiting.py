"""What rollouts wait for: answers of the engine, each other, or the world outside (timers, sockets, threads).

Only when nothing is ready to run and nobody waits for the outside is it settled what the next batch holds,
however long each tool took. asyncio does not say which of the three a task waits for, so the event loop notes
where its futures come from.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Executor
from types import CodeType, CoroutineType
from typing import Any
from weakref import WeakSet

Future = asyncio.Future[Any]
Task = asyncio.Task[Any]

_AMONG_TASKS = frozenset({"asyncio.locks", "asyncio.queues", "asyncio.taskgroups", "asyncio.tasks"})
"""asyncio's modules whose futures other tasks complete; of asyncio.tasks all but `sleep`."""


class RolloutLoop(asyncio.SelectorEventLoop):
    """An event loop that knows what its tasks wait for. Time spent in the engine is no time to its time-outs."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: WeakSet[Future] = WeakSet()
        self.frozen_seconds = 0.0
        self._among_tasks: WeakSet[Future] = WeakSet()
        self._in_threads: set[Future] = set()

    def time(self) -> float:
        return super().time() - self.frozen_seconds

    def create_future(self) -> Future:
        future = super().create_future()
        caller = sys._getframe(1)
        if caller.f_globals.get("__name__") in _AMONG_TASKS and caller.f_code is not _SLEEP:
            self._among_tasks.add(future)
        return future

    def create_answer(self) -> Future:
        """A future that an answer of the engine will complete."""
        future = super().create_future()
        self.answers.add(future)
        return future

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> Future:
        future = super().run_in_executor(executor, func, *args)
        self._in_threads.add(future)
        future.add_done_callback(self._in_threads.discard)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Threads that are still at work at the end are left to themselves: nobody waits for them any more."""
        del timeout
        if self._default_executor is not None:  # type: ignore[attr-defined]
            self._default_executor.shutdown(wait=False, cancel_futures=True)  # type: ignore[attr-defined]

    @property
    def quiet(self) -> bool:
        """Whether nothing is ready to run but the task that asks."""
        return not self._ready  # type: ignore[attr-defined]

    def outside(self, tasks: Iterable[Task]) -> set[Future]:
        """The pending futures that these tasks wait for, directly or through other tasks, and that only the
        world outside completes. Who will release a lock or fill a queue cannot be known: where one is waited
        for, every task but the one that asks counts."""
        found: set[Future] = set()
        seen: set[Future] = set()
        ahead: list[Future | None] = list(tasks)
        while ahead:
            future = ahead.pop()
            if future is None or future.done() or future in seen:
                continue
            seen.add(future)
            if isinstance(future, asyncio.Task):
                ahead.append(_waited_for(future))
            elif hasattr(future, "_children"):  # what asyncio.gather returns
                ahead += future._children
            elif future in self._among_tasks:
                ahead += asyncio.all_tasks(self) - {asyncio.current_task(self)}
                found |= self._in_threads
            elif future not in self.answers:
                found.add(future)
        return found


def place(future: Future, tasks: Iterable[Task]) -> str:
    """Where a task waits for this future, "fetch (tools.py, line 12)"; "" if no task does."""
    for task in tasks:
        if _waited_for(task) is future:
            return _innermost(task.get_coro())
    return ""


def _waited_for(task: Task) -> Future | None:
    waited: Future | None = task._fut_waiter  # type: ignore[attr-defined]
    return waited


def _innermost(coroutine: Coroutine[Any, Any, Any] | Any) -> str:
    """The deepest frame of a suspended coroutine that is not asyncio's own."""
    found = ""
    while isinstance(coroutine, CoroutineType):
        frame = coroutine.cr_frame
        if frame is not None and not str(frame.f_globals.get("__name__")).startswith("asyncio."):
            file = frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
            found = f"{frame.f_code.co_name} ({file}, line {frame.f_lineno})"
        coroutine = coroutine.cr_await
    return found


_SLEEP: CodeType = asyncio.sleep.__code__
