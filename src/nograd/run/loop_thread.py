"""An event loop in a thread of its own, for coroutines started from ordinary code."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds to wait for the loop's thread to end; a coroutine that blocks it is left behind."""


class LoopThread:
    """Runs coroutines. What they keep open (a client's connections) lasts from one `run` to the next, and it
    works where a loop runs already (a notebook). It ends with the object."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, name="nograd-loop", daemon=True)
        thread.start()
        weakref.finalize(self, _end, self._loop, thread)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine. An interrupt of the waiting thread (Ctrl-C) cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Also called in the loop's own thread, where the last reference may be dropped."""
    cancelled = asyncio.run_coroutine_threadsafe(_cancel_others(), loop)
    cancelled.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
    if thread is not threading.current_thread():
        thread.join(PATIENCE)
        if not thread.is_alive():
            loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
