"""The engine thread: shared passes, the bits of a request alone, and nobody who is left waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import until

from nograd.llm.chat import Message
from nograd.llm.delta import Perturbation
from nograd.llm.engine import Engine
from nograd.llm.kernels import PAGE
from nograd.llm.loading import load_model
from nograd.llm.requests import Completion, CompletionRequest, Request, Result
from nograd.llm.subspace import SubspaceSpec, build_subspace
from nograd.llm.transformer import Transformer
from nograd.run.build_agent import set_threads
from nograd.serve.api_error import ApiError
from nograd.serve.engine_thread import SLICE, EngineThread, Progress, Update
from tiny_models import save_tiny_chat, thetas, tiny_scheduler

STAGES = ("first", "second", "third")
THETAS = thetas(3, 4, seed=1)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = save_tiny_chat(tmp_path_factory.mktemp("model"), max_position_embeddings=256)
    engine = tiny_scheduler(folder, STAGES).engine
    assert isinstance(engine, Engine)
    return engine


@contextmanager
def started(engine: Engine) -> Iterator[EngineThread]:
    thread = EngineThread(engine, 1)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop(10)


def request(number: int, length: int, max_tokens: int) -> CompletionRequest:
    """Requests of different stages, θ and prompts, by number."""
    prompt = np.random.default_rng(number).integers(3, 100, length).tolist()
    return CompletionRequest(number % 3, THETAS[number % 2], tuple(prompt), max_tokens)


class Inbox:
    """Updates of several jobs, by number."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[tuple[int, Update]] = SimpleQueue()
        self.updates: dict[int, list[Update]] = {}

    def listener(self, number: int) -> Callable[[Update], None]:
        return partial(lambda number, update: self.queue.put((number, update)), number)

    def collect(self, count: int) -> dict[int, list[Update]]:
        """All updates, once so many jobs have had their last one."""
        ended = 0
        while ended < count:
            number, update = self.queue.get(timeout=30)
            self.updates.setdefault(number, []).append(update)
            ended += isinstance(update, Exception) or update.finish is not None
        return self.updates


def joined(updates: Sequence[Update]) -> Completion:
    progress = [update for update in updates if isinstance(update, Progress)]
    assert [p.finish for p in progress[:-1]] == [None] * (len(progress) - 1)
    assert progress[-1].finish is not None
    return Completion(tuple(token for p in progress for token in p.tokens), progress[-1].finish)


def alone(engine: Engine, requests: Sequence[CompletionRequest]) -> list[Result]:
    results = []
    for each in requests:
        engine.forget()
        results += engine.run([each])
    engine.forget()
    return results


SIZES = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 3 * SLICE)), min_size=1, max_size=6)


@settings(deadline=None, max_examples=15)
@given(sizes=SIZES, pauses=st.lists(st.sampled_from([0, 0.002]), min_size=6, max_size=6))
def test_whoever_else_is_there_the_tokens_are_those_of_the_request_alone(
    engine: Engine, sizes: list[tuple[int, int]], pauses: list[float]
) -> None:
    requests = [request(number, *size) for number, size in enumerate(sizes)]
    expected = alone(engine, requests)
    inbox = Inbox()
    with started(engine) as thread:
        for number, each in enumerate(requests):
            thread.submit(each, inbox.listener(number))
            time.sleep(pauses[number])
        updates = inbox.collect(len(requests))
    assert [joined(updates[number]) for number in range(len(requests))] == expected


@pytest.fixture
def calls(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[list[Request]]:
    """What reaches the engine; each call takes a moment, in which others come."""
    seen: list[list[Request]] = []
    run = engine.run

    def noted(requests: Sequence[Request]) -> list[Result]:
        seen.append(list(requests))
        time.sleep(0.02)
        return run(requests)

    monkeypatch.setattr(engine, "run", noted)
    return seen


def test_those_that_wait_together_are_computed_together(engine: Engine, calls: list[list[Request]]) -> None:
    inbox = Inbox()
    with started(engine) as thread:
        for number in range(7):
            thread.submit(request(number, 10, 2 * SLICE), inbox.listener(number))
        inbox.collect(7)
    assert len(calls) <= 4, "the first perhaps alone, the others beside it or behind"
    widest = max(calls, key=len)
    assert len(widest) >= 6
    assert {each.module for each in widest} == {0, 1, 2}


def test_a_latecomer_does_not_wait_for_a_long_answer(engine: Engine, calls: list[list[Request]]) -> None:
    inbox = Inbox()
    with started(engine) as thread:
        thread.submit(request(0, 10, 20 * SLICE), inbox.listener(0))
        until(lambda: calls)
        thread.submit(request(1, 10, 1), inbox.listener(1))
        inbox.collect(1)
        assert list(inbox.updates[1]), "the latecomer was first to end"
        assert len(calls) <= 4
        inbox.collect(1)


def test_an_abandoned_job_leaves_at_the_next_slice(engine: Engine, calls: list[list[Request]]) -> None:
    inbox = Inbox()
    with started(engine) as thread:
        job = thread.submit(request(0, 10, 40 * SLICE), inbox.listener(0))
        until(lambda: len(calls) == 2)
        job.cancel()
        thread.submit(request(1, 10, 3 * SLICE), inbox.listener(1))
        inbox.collect(1)
    assert [len(call) for call in calls[3:]] == [1] * (len(calls) - 3)
    assert len(calls) <= 6


def test_what_does_not_fit_is_too_long_as_in_the_engine(engine: Engine) -> None:
    inbox = Inbox()
    with started(engine) as thread:
        for number, (length, tokens) in enumerate([(256, 1), (250, 7), (250, 6)]):
            thread.submit(request(number, length, tokens), inbox.listener(number))
        updates = inbox.collect(3)
    assert [joined(updates[number]).finish for number in range(2)] == ["too_long"] * 2
    assert joined(updates[2]) == alone(engine, [request(2, 250, 6)])[0]


def test_more_than_the_cache_holds_waits_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_tiny_chat(tmp_path, max_position_embeddings=256)
    big = tiny_scheduler(folder, STAGES).engine
    assert isinstance(big, Engine)
    small = Engine(big.transformer, big.perturbation, big.eos_ids, token_budget=16 * PAGE)
    requests = [request(number, 100, 2 * SLICE) for number in range(12)]
    expected = alone(small, requests)
    widths = []
    run = small.run

    def noted(several: Sequence[Request]) -> list[Result]:
        widths.append(len(several))
        return run(several)

    monkeypatch.setattr(small, "run", noted)
    inbox = Inbox()
    with started(small) as thread:
        for number, each in enumerate(requests):
            thread.submit(each, inbox.listener(number))
        updates = inbox.collect(12)
    assert max(widths) == 1, "16 pages: one request's at a time"
    assert [joined(updates[number]) for number in range(12)] == expected


def test_a_failing_engine_is_reported_to_all_and_the_thread_goes_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(requests: Sequence[Request]) -> list[Result]:
        raise MemoryError(f"{len(requests)}")

    with started(engine) as thread:
        with monkeypatch.context() as patch:
            patch.setattr(engine, "run", broken)
            inbox = Inbox()
            for number in range(3):
                thread.submit(request(number, 5, 3), inbox.listener(number))
            updates = inbox.collect(3)
        assert all(isinstance(updates[number][-1], MemoryError) for number in range(3))
        assert "the engine failed on" in caplog.text
        again = Inbox()
        thread.submit(request(0, 5, 3), again.listener(0))
        found = joined(again.collect(1)[0])
    assert found == alone(engine, [request(0, 5, 3)])[0]


def test_stopping_leaves_nobody_waiting(engine: Engine, calls: list[list[Request]]) -> None:
    inbox = Inbox()
    with started(engine) as thread:
        for number in range(3):
            thread.submit(request(number, 10, 40 * SLICE), inbox.listener(number))
        until(lambda: calls)
    thread.submit(request(3, 10, 4), inbox.listener(3))
    last = [updates[-1] for updates in inbox.collect(4).values()]
    assert [error.status for error in last if isinstance(error, ApiError)] == [503] * 4


@pytest.mark.real
def test_slices_of_the_embedded_model_are_its_uninterrupted_answer() -> None:
    model = load_model("smollm2-135m", dtype="bfloat16", device="cpu")
    subspace = build_subspace(model.architecture, model.weights, SubspaceSpec(2, 8, "random"), model.fingerprint, None)
    perturbation = Perturbation(model.architecture, subspace, model.device, model.dtype)
    set_threads(1)
    engine = Engine(Transformer(model.architecture, model.weights), perturbation, model.chat.eos_ids, 2048)
    questions = ("Name three fruits.", "What is the capital of France?", "Tell me about rain.")
    requests = [
        CompletionRequest(
            number % 2, thetas(3, 8, scale=0.2)[number], tuple(model.chat.encode_chat([Message("user", text)])), 18
        )
        for number, text in enumerate(questions)
    ]
    expected = alone(engine, requests)
    inbox = Inbox()
    with started(engine) as thread:
        for number, each in enumerate(requests):
            thread.submit(each, inbox.listener(number))
        updates = inbox.collect(3)
    assert [joined(updates[number]) for number in range(3)] == expected
