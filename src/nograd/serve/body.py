"""Reading a request's body, and noticing that its sender has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from nograd.serve.api_error import ApiError

T = TypeVar("T")


async def read_body(request: Request, most: int) -> bytes:
    """The whole body, at most so many bytes. Raises ApiError with status 413 as soon as there are more."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise ApiError(413, f"the body has more than {most:,} bytes; send less", headers={"Connection": "close"})
    return bytes(body)


async def while_connected(request: Request, work: Coroutine[None, None, T]) -> T:
    """The result of the work, which is given up when the client goes away. The body must have been read."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
