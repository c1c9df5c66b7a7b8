"""Calls that fail, hang or misbehave: time limits, pauses, and nothing that ever hangs the run."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.run.attempts import LONGEST_PAUSE, CallError, Patience, call
from nograd.run.loop_thread import LoopThread
from nograd.search.streams import stream


def ask(function: Callable[[], Any], slots: int = 4, **patience: Any) -> Any:
    """One call from start to end."""

    async def work() -> Any:
        options = Patience(**{"pause": 0.0, **patience})
        return await call(function, options, asyncio.Semaphore(slots), stream(1, "pause"))

    return LoopThread().run(work())


async def after(seconds: float, value: int) -> int:
    await asyncio.sleep(seconds)
    return value


class Counted:
    """Raises an error so many times, then returns how often it was called. Calls itself async if it is so."""

    def __init__(self, failures: int, error: BaseException) -> None:
        self.failures, self.error, self.calls = failures, error, 0

    def __call__(self) -> int:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return self.calls

    async def awaited(self) -> int:
        await asyncio.sleep(0)
        return self()


def test_plain_and_async_functions_alike() -> None:
    assert ask(lambda: 3) == 3
    assert ask(partial(after, 0.0, 4)) == 4
    assert ask(lambda: after(0.0, 5)) == 5


@pytest.mark.parametrize("error", [OSError("gone"), StopIteration(), SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("way", ["__call__", "awaited"])
def test_every_kind_of_failure_is_tried_again_and_told(error: BaseException, way: str) -> None:
    assert ask(getattr(Counted(2, error), way), retries=2) == 3
    function = Counted(3, error)
    with pytest.raises(CallError, match=r"\(3 attempts\)"):
        ask(getattr(function, way), retries=2)
    assert function.calls == 3


def test_the_failure_is_told_in_its_own_words() -> None:
    with pytest.raises(CallError, match=r"^OSError: gone \(1 attempt\)$") as caught:
        ask(Counted(1, OSError("gone")), retries=0)
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(CallError, match=r"^ZeroDivisionError \(1 attempt\)$"):
        ask(Counted(1, ZeroDivisionError()), retries=0)
    with pytest.raises(CallError, match=r"^TimeoutError: the database is slow \(1 attempt\)$"):
        ask(Counted(1, TimeoutError("the database is slow")), retries=0, timeout=5)


def test_a_time_limit_holds_for_each_attempt() -> None:
    hung = threading.Event()
    start = time.perf_counter()
    for function in (hung.wait, partial(after, 3600, 0)):
        with pytest.raises(CallError, match=r"TimeoutError: no answer within 0\.05 s \(3 attempts\)"):
            ask(function, retries=2, timeout=0.05)
    assert 0.3 <= time.perf_counter() - start < 10
    hung.set()


def test_waiting_for_a_slot_is_not_held_against_a_call() -> None:
    async def crowd() -> list[Any]:
        slots = asyncio.Semaphore(1)
        calls = [call(partial(time.sleep, 0.1), Patience(retries=0, timeout=0.4), slots, stream(1)) for _ in range(8)]
        return list(await asyncio.gather(*calls))

    assert LoopThread().run(crowd()) == [None] * 8


def test_a_call_left_behind_takes_no_slot() -> None:
    hung = threading.Event()

    async def crowd() -> Any:
        slots = asyncio.Semaphore(1)
        with pytest.raises(CallError):
            await call(hung.wait, Patience(retries=3, timeout=0.02, pause=0.0), slots, stream(1))
        return await call(lambda: "free", Patience(timeout=5.0), slots, stream(1))

    assert LoopThread().run(crowd()) == "free"
    hung.set()


def test_a_pause_takes_no_slot() -> None:
    order: list[str] = []

    def first() -> None:
        order.append("first")
        if order.count("first") == 1:
            raise OSError

    async def two() -> None:
        slots = asyncio.Semaphore(1)
        patience = Patience(pause=0.2)
        await asyncio.gather(
            call(first, patience, slots, stream(1)), call(lambda: order.append("second"), patience, slots, stream(1))
        )

    LoopThread().run(two())
    assert order == ["first", "second", "first"]


@given(st.floats(0, 1e6), st.integers(1, 2000), st.integers())
@settings(deadline=None, max_examples=50)
def test_pauses_double_up_to_a_limit_and_are_keyed(pause: float, failures: int, seed: int) -> None:
    patience = Patience(pause=pause)
    waits = [patience.pause_after(failures, stream(seed, "pause")) for _ in range(2)]
    assert waits[0] == waits[1]
    longest = min(pause * 2.0 ** min(failures - 1, 64), LONGEST_PAUSE)
    assert longest / 2 <= waits[0] <= longest


def test_pauses_differ_between_candidates() -> None:
    waits = {Patience().pause_after(1, stream(1, "pause", 0, row)) for row in range(9)}
    assert len(waits) == 9


def test_a_loop_thread_ends_with_its_object() -> None:
    def loops() -> int:
        return sum(thread.name == "nograd-loop" for thread in threading.enumerate())

    gc.collect()
    before = loops()
    several = [LoopThread() for _ in range(9)]
    assert [each.run(after(0.0, i)) for i, each in enumerate(several)] == list(range(9))
    assert loops() == before + 9
    del several
    gc.collect()
    assert loops() == before


INTERRUPTED = """
import threading, numpy as np
from nograd.run.black_box import BlackBox

def hangs(theta, generation, seed):
    print("asked", flush=True)
    threading.Event().wait()

box = BlackBox(hangs, ["a"], 1, seed=1)
try:
    box.evaluate(0, np.zeros((1, 1, 1), np.float32))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_ctrl_c_does_not_wait_for_calls_under_way() -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        start = time.perf_counter()
        assert process.stdout.read() == "stopped\n"
        assert process.stderr.read() == ""
        assert process.wait() == 0
    assert time.perf_counter() - start < 20
