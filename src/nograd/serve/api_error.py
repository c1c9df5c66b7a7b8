"""A refusal that a client reads: an HTTP status and an error object as OpenAI's API has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nograd.errors import NogradError


class ApiError(NogradError):
    """status: of HTTP. code: what a program can look at. param: the parameter that is to blame.
    headers: further ones of the response."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The error object."""
        kind = {401: "authentication_error", 429: "rate_limit_error"}.get(
            self.status, "server_error" if self.status >= 500 else "invalid_request_error"
        )
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


def as_api_error(error: Exception) -> ApiError:
    """The refusal that an exception becomes; what is not a sentence for people is kept from the client."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, NogradError):
        return ApiError(400, str(error))
    return ApiError(500, "nograd failed on this request; the server's terminal shows why", code="internal_error")


def too_long(positions: int, prompt: int, completion: int) -> ApiError:
    """A prompt that, with what is to be written, does not fit into the model's positions (all in tokens)."""
    return ApiError(
        400,
        f"the model takes {positions} tokens in all, but this is {prompt} of prompt and {completion} of completion; "
        "shorten the messages or lower max_tokens",
        code="context_length_exceeded",
        param="messages",
    )
