"""A stage's completion of a chat, as pieces of text while it is being computed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from nograd.llm.requests import CompletionRequest
from nograd.serve.api_error import ApiError, too_long
from nograd.serve.chat_request import ChatRequest
from nograd.serve.deadline import in_time
from nograd.serve.engine_thread import EngineThread, Progress, Update
from nograd.serve.limits import Limits
from nograd.serve.served import Served, Stage
from nograd.serve.writer import Writer


@dataclass(frozen=True)
class Usage:
    """Tokens of all prompts, and tokens written (without the one that ends a completion)."""

    prompt: int
    completion: int


@dataclass(frozen=True)
class Piece:
    """A piece of an answer. finish and usage: with the last piece only."""

    text: str
    finish: Literal["stop", "length"] | None = None
    usage: Usage | None = None


def completion_request(served: Served, stage: Stage, chat: ChatRequest, limits: Limits) -> CompletionRequest:
    """The engine's request. Takes as long as tokenising does; raises ApiError for a prompt or a limit that is
    too long, ModelError for a chat that the model's template refuses."""
    if chat.token_limit is not None and chat.token_limit > limits.max_tokens:
        raise ApiError(
            400,
            f"max_tokens = {chat.token_limit} is more than the {limits.max_tokens} that this server writes at most; "
            "ask for fewer, or start it with a larger --max-tokens",
            code="invalid_value",
            param="max_tokens" if chat.max_tokens else "max_completion_tokens",
        )
    positions = served.engine.transformer.architecture.max_positions
    prompt = tuple(served.chat.encode_chat([message.message() for message in chat.messages]))
    room = positions - len(prompt)
    wanted = chat.token_limit or max(1, min(limits.max_tokens, room))
    if wanted > room:
        raise too_long(positions, len(prompt), wanted)
    return CompletionRequest(stage.module, stage.theta, prompt, wanted)


async def completion(
    served: Served, engine: EngineThread, request: CompletionRequest, stop: list[str], deadline: float
) -> AsyncGenerator[Piece]:
    """The pieces; the last one has a finish. deadline: on the event loop's clock. Closing leaves the engine."""
    writer = Writer(served.chat.decode, stop)
    async with aclosing(_progress(engine, request, deadline)) as updates:
        async for progress in updates:
            ended = progress.finish is not None
            text = writer.add(progress.tokens, last=ended)
            if ended or writer.stopped:
                by_itself = writer.stopped or progress.finish == "stop"
                usage = Usage(len(request.prompt), writer.count)
                yield Piece(text, "stop" if by_itself else "length", usage)
                return
            if text:
                yield Piece(text)


async def _progress(engine: EngineThread, request: CompletionRequest, deadline: float) -> AsyncGenerator[Progress]:
    """The engine thread's updates on this request, in this event loop."""
    loop = asyncio.get_running_loop()
    updates: asyncio.Queue[Update] = asyncio.Queue()

    def listen(update: Update) -> None:
        loop.call_soon_threadsafe(updates.put_nowait, update)

    job = engine.submit(request, listen)
    try:
        while True:
            async with in_time(deadline):
                update = await updates.get()
            if isinstance(update, Exception):
                raise update
            yield update
            if update.finish is not None:
                return
    finally:
        job.cancel()
