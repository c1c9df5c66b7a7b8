"""Calls of code that may be slow or fail: a time limit, further attempts with growing pauses, never a hang.

It knows nothing of candidates and evaluations.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nograd.errors import ConfigError, NogradError

LONGEST_PAUSE = 60.0
"""Seconds; the pauses double up to here."""


class CallError(Exception):
    """A call failed at every attempt; the last failure is its cause."""


@dataclass(frozen=True)
class Patience:
    """How long to bear with a failing call. retries: attempts after the first. timeout: seconds for one
    attempt, None for no limit. pause: seconds before the second attempt; doubles with each further one.
    Raises ConfigError for a value out of range."""

    retries: int = 2
    timeout: float | None = None
    pause: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise ConfigError(f"retries is a number of attempts after the first, 0 or more, got {self.retries!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigError(f"timeout is in seconds, more than 0, or None for no limit, got {self.timeout!r}")
        if not 0 <= self.pause < math.inf:
            raise ConfigError(f"pause is in seconds, 0 or more, got {self.pause!r}")

    def pause_after(self, failures: int, draws: np.random.Generator) -> float:
        """Seconds to wait after so many failures: exponential backoff, half to all of it at random, so that
        calls that failed together do not come back together."""
        longest = min(self.pause * 2.0 ** min(failures - 1, 64), LONGEST_PAUSE)
        return float(longest * draws.uniform(0.5, 1.0))


async def call(
    function: Callable[[], Any], patience: Patience, slots: asyncio.Semaphore, draws: np.random.Generator
) -> Any:
    """What the function returns, awaited if it is awaitable. slots: attempts that may be under way at once; a
    pause takes none.

    Any exception of the function is a failure, a NogradError alone passes at once. Raises CallError after the
    last attempt."""
    for failures in range(1, patience.retries + 2):
        try:
            async with slots, asyncio.timeout(patience.timeout):
                return await _attempt(function)
        except NogradError:
            raise
        except Exception as error:
            last = _understood(error, patience)
        if failures <= patience.retries:
            await asyncio.sleep(patience.pause_after(failures, draws))
    raise CallError(f"{_described(last)} ({_times(patience.retries + 1)})") from last


async def _attempt(function: Callable[[], Any]) -> Any:
    """The function in a thread of its own, for it may block. One that outlives its time limit is left behind
    as a daemon: it neither takes a slot nor keeps the process alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def work() -> None:
        try:
            outcome: tuple[Any, BaseException | None] = (function(), None)
        except BaseException as error:
            outcome = (None, error)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_settle, done, outcome)

    threading.Thread(target=work, name="nograd-call", daemon=True).start()
    value, error = await done
    try:
        if error is not None:
            raise error
        return await value if inspect.isawaitable(value) else value
    except (SystemExit, KeyboardInterrupt) as end:
        raise RuntimeError(f"it ended with {end!r}") from end


def _settle(done: asyncio.Future[Any], outcome: Any) -> None:
    if not done.done():
        done.set_result(outcome)


def _understood(error: Exception, patience: Patience) -> Exception:
    """The time limit's bare TimeoutError gets its number; one of the function's own keeps its words."""
    if isinstance(error, TimeoutError) and not str(error) and patience.timeout is not None:
        return TimeoutError(f"no answer within {patience.timeout:g} s")
    return error


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _times(attempts: int) -> str:
    return "1 attempt" if attempts == 1 else f"{attempts} attempts"
