"""JSON, error and event-stream responses in the form that OpenAI's clients read."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from starlette.responses import Response, StreamingResponse

from nograd.serve.api_error import as_api_error
from nograd.serve.completion import Piece, Usage

_NO_BUFFER = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""The second is for nginx in front, which would collect a stream into one answer."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Head:
    """What every object about one completion says. created: seconds since 1970."""

    model: str
    created: int
    id: str

    @classmethod
    def new(cls, model: str, created: float) -> Head:
        return cls(model, int(created), f"chatcmpl-{uuid4().hex}")

    def fields(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def json_response(value: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """ASCII JSON: a client's own text comes back as it was, whatever it holds."""
    return Response(json.dumps(value), status, headers, "application/json")


def error_response(error: Exception) -> Response:
    """The error object of an exception, with its status."""
    refusal = as_api_error(error)
    return json_response(refusal.body(), refusal.status, refusal.headers)


def completion_object(head: Head, pieces: list[Piece]) -> dict[str, Any]:
    """A chat.completion object from all pieces of an answer."""
    last = pieces[-1]
    assert last.usage is not None
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "".join(piece.text for piece in pieces), "refusal": None},
        "logprobs": None,
        "finish_reason": last.finish,
    }
    return {**head.fields("chat.completion"), "choices": [choice], "usage": usage_object(last.usage)}


def usage_object(usage: Usage) -> dict[str, int]:
    """Token counts under OpenAI's names."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
    }


def event_stream(head: Head, pieces: AsyncGenerator[Piece], with_usage: bool) -> Response:
    """Server-sent events: one chat.completion.chunk per piece as it comes, then [DONE].

    The status has been sent when something fails, so an error is an event, and the last one."""
    return StreamingResponse(_events(head, pieces, with_usage), media_type="text/event-stream", headers=_NO_BUFFER)


async def _events(head: Head, pieces: AsyncGenerator[Piece], with_usage: bool) -> AsyncIterator[str]:
    usage_key = {"usage": None} if with_usage else {}

    def chunk(delta: Mapping[str, str], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**head.fields("chat.completion.chunk"), "choices": [choice], **usage_key})

    yield chunk({"role": "assistant", "content": ""})
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                if piece.text:
                    yield chunk({"content": piece.text})
                if piece.finish is not None:
                    yield chunk({}, piece.finish)
                if piece.usage is not None and with_usage:
                    counted = {"choices": [], "usage": usage_object(piece.usage)}
                    yield _event({**head.fields("chat.completion.chunk"), **counted})
    except Exception as error:
        refusal = as_api_error(error)
        if refusal.status == 500:
            _log.exception("a streamed completion failed")
        yield _event(refusal.body())
        return
    yield "data: [DONE]\n\n"


def _event(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"
