"""Giving a request up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nograd.serve.api_error import ApiError


@asynccontextmanager
async def in_time(deadline: float) -> AsyncIterator[None]:
    """Raises ApiError with status 504 if the block is not done at `deadline`, on the event loop's clock.

    The header tells OpenAI's clients not to ask again at once: it would take as long."""
    try:
        async with asyncio.timeout_at(deadline):
            yield
    except TimeoutError as error:
        raise ApiError(
            504,
            "the answer took longer than this server's time limit; ask for fewer tokens, or start it with a larger "
            "--timeout",
            code="timeout",
            headers={"x-should-retry": "false"},
        ) from error
