"""From what is served to a running server: the socket, the engine thread, uvicorn."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from nograd.errors import ConfigError
from nograd.serve.app import Api, build_app
from nograd.serve.engine_thread import EngineThread
from nograd.serve.limits import Limits
from nograd.serve.served import Served

_PATIENCE = 10
"""Seconds that the slice under way and the last responses get when the server is told to stop."""


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; port 0 takes a free one. Raises ConfigError if the address cannot be had.

    To be opened before the model is loaded: a port in use should not cost half a minute."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
            yield listener
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port} ({error.strerror or error}); choose another --port or --host"
        ) from error


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine can connect."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def url(host: str, listener: socket.socket) -> str:
    """Where a client on this machine finds the server."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::", "") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def serve(
    served: Served,
    listener: socket.socket,
    *,
    limits: Limits,
    api_key: str | None = None,
    threads: int | None = None,
) -> None:
    """Answer requests until SIGINT or SIGTERM, which is raised again when all is shut down.

    threads: of the engine, None keeps the library's choice."""
    engine = EngineThread(served.engine, threads)
    api = Api(served, engine, limits)
    app = build_app(api, api_key=api_key, loopback=is_loopback(listener))
    settings = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=_PATIENCE, server_header=False
    )
    engine.start()
    try:
        _Server(settings, engine).run(sockets=[listener])
    finally:
        engine.stop(_PATIENCE)
        api.threads.shutdown(wait=False, cancel_futures=True)


class _Server(uvicorn.Server):
    """A server that, told to stop, does not wait for what the engine has under way: it fails with status 503."""

    def __init__(self, config: uvicorn.Config, engine: EngineThread) -> None:
        super().__init__(config)
        self._engine = engine

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._engine.stop(0)
        await super().shutdown(sockets)
