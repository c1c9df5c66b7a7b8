"""A real server in a thread, a client to it, and what reached its engine."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import httpx
import openai
import uvicorn

from nograd.llm.engine import Engine
from nograd.llm.requests import Request, Result
from nograd.serve.app import Api, build_app
from nograd.serve.engine_thread import EngineThread
from nograd.serve.limits import Limits
from nograd.serve.served import Served

LIMITS = Limits()


@dataclass
class Running:
    """url: without a path. calls: the requests of each engine call, in order. hold: while it is cleared, the engine
    thread waits before its next call."""

    url: str
    engine: EngineThread
    calls: list[list[Request]] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    held: int = 0

    @property
    def pending(self) -> int:
        """Requests that the held engine thread is about to compute, and those that queue behind."""
        return self.held + len(self.engine._waiting)

    @cached_property
    def http(self) -> httpx.Client:
        """A plain client; made once, for making one costs more than a request."""
        return httpx.Client(base_url=self.url, timeout=60, verify=False)

    @cached_property
    def _openai(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=60)

    def client(self, api_key: str = "none", retries: int = 0) -> openai.OpenAI:
        """OpenAI's client."""
        return self._openai.with_options(api_key=api_key, max_retries=retries)

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        return self.http.get(path, **arguments)

    def post(self, path: str, **arguments: Any) -> httpx.Response:
        return self.http.post(path, **arguments)


def until(condition: Any, seconds: float = 20) -> None:
    """Return once the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


@contextmanager
def running(
    served: Served, limits: Limits = LIMITS, api_key: str | None = None, loopback: bool = True
) -> Iterator[Running]:
    """A server on a free port, for as long as the context lasts. It has an engine of its own, over the same model."""
    shared = served.engine
    own = Engine(shared.transformer, shared.perturbation, shared.eos_ids, 20_000)
    engine = EngineThread(own, 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Running(f"http://127.0.0.1:{listener.getsockname()[1]}", engine)
        _note_calls(own, server)
        api = Api(replace(served, engine=own), engine, limits)
        app = build_app(api, api_key=api_key, loopback=loopback)
        settings = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
        uvicorn_server = uvicorn.Server(settings)
        thread = threading.Thread(target=uvicorn_server.run, args=([listener],))
        engine.start()
        thread.start()
        try:
            yield server
        finally:
            server.hold.set()
            engine.stop(10)
            uvicorn_server.should_exit = True
            thread.join()
            api.threads.shutdown()


def _note_calls(engine: Engine, server: Running) -> None:
    """Have each engine call noted, after it has waited for `hold`; what it computes stays its own."""
    run = engine.run
    server.hold.set()

    def noted(requests: Sequence[Request]) -> list[Result]:
        server.held = len(requests)
        server.hold.wait()
        server.held = 0
        server.calls.append(list(requests))
        return run(requests)

    engine.run = noted  # type: ignore[method-assign]
