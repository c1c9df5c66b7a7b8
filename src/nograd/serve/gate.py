"""What a request must pass before it is read: where it comes from, who sends it, and whether there is room."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from nograd.serve.api_error import ApiError
from nograd.serve.responses import error_response

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Gate:
    """ASGI middleware. hosts: names under which the server may be addressed, None for any.

    A page in a browser on this machine must not reach the agent's tools: CORS is off, a body must say that it is
    JSON (a page cannot, without CORS), and on loopback the Host must be loopback's (against rebound DNS names)."""

    def __init__(self, app: ASGIApp, *, requests: int, api_key: str | None, hosts: frozenset[str] | None) -> None:
        self._app, self._limit, self._api_key, self._hosts = app, requests, api_key, hosts
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
        except ApiError as error:
            await error_response(error)(scope, receive, send)
            return
        counted = scope["method"] == "POST"
        self._inside += counted
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= counted

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        _check_host(headers, self._hosts)
        if scope["path"] == "/health":
            return
        if self._api_key is not None:
            _check_key(headers, self._api_key)
        if scope["method"] == "POST":
            _check_json(headers)
            self._check_room()

    def _check_room(self) -> None:
        if self._inside >= self._limit:
            raise ApiError(
                429,
                f"{self._limit} requests are being answered or wait already; try again, or start the server with a "
                "larger --requests",
                code="rate_limit_exceeded",
                headers={"Retry-After": "1"},
            )


def _check_host(headers: Mapping[str, str], hosts: frozenset[str] | None) -> None:
    host = headers.get("host", "")
    name = host[: host.rfind("]") + 1] or host.partition(":")[0]
    if hosts is not None and name.lower() not in hosts:
        raise ApiError(
            403,
            f"this server listens on loopback only and does not answer for the host {name[:80]!r}; "
            "address it as localhost",
            code="host_not_allowed",
        )


def _check_key(headers: Mapping[str, str], api_key: str) -> None:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    known = hmac.compare_digest(given.strip().encode(), api_key.encode())
    if scheme.lower() != "bearer" or not known:
        raise ApiError(
            401, "the API key is missing or wrong; send it as 'Authorization: Bearer KEY'", code="invalid_api_key"
        )


def _check_json(headers: Mapping[str, str]) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(415, f"the body is {kind[:80]!r}; send JSON, with 'Content-Type: application/json'")
