"""The body of a chat completion request: what is understood, and a sentence for everything else.

A parameter that cannot be obeyed is refused, not ignored, unless it asks for what happens anyway; null means: not
given. The parameters are those of OpenAI's API reference, "Create chat completion".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nograd.errors import unknown_name
from nograd.llm.chat import Message
from nograd.serve.api_error import ApiError

FREE = frozenset(
    {"metadata", "prompt_cache_key", "safety_identifier", "seed", "service_tier", "store", "top_p", "user"}
)
"""Parameters that change nothing about a greedy completion, whatever their value."""

NEUTRAL: dict[str, tuple[tuple[Any, ...], str]] = {
    "temperature": ((0,), "decoding is greedy, as the agent was tuned; send 0 or leave it out"),
    "n": ((1,), "greedy decoding has one answer; send 1 or leave it out"),
    "presence_penalty": ((0,), "decoding is greedy, as the agent was tuned; send 0 or leave it out"),
    "frequency_penalty": ((0,), "decoding is greedy, as the agent was tuned; send 0 or leave it out"),
    "logit_bias": (({},), "logits are not changed; leave it out"),
    "logprobs": ((False,), "log-probabilities are not returned; leave it out"),
    "top_logprobs": ((0,), "log-probabilities are not returned; leave it out"),
    "tools": (([],), "the stages know no tool messages; put tools into the text, or ask the whole agent at /agent"),
    "tool_choice": (("none", "auto"), "there are no tools to choose from; leave it out"),
    "parallel_tool_calls": ((True, False), "there are no tools to call; leave it out"),
    "functions": (([],), "the stages know no function messages; put functions into the text"),
    "function_call": (("none", "auto"), "there are no functions to call; leave it out"),
    "response_format": (({"type": "text"},), "the text is not constrained; ask for the format in the messages"),
    "modalities": ((["text"],), "there is only text; leave it out"),
}
"""Parameter -> the values under which it asks for what happens anyway, and what to do instead of another value."""


def _text(value: object) -> object:
    """A content as one text: OpenAI's clients also send it as a list of text parts."""
    if not isinstance(value, list):
        return value
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in value]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("takes a text, or a list of parts of type 'text' only")
    return "".join(map(str, texts))


def _stop_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    def others(self) -> dict[str, Any]:
        """What was sent beside the fields; null counts as not sent."""
        return {name: value for name, value in (self.model_extra or {}).items() if value is not None}


class ChatMessage(_Body):
    """One message."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, BeforeValidator(_text)]

    def message(self) -> Message:
        """As the chat template takes it; a developer's message is the system's newer name."""
        return Message("system" if self.role == "developer" else self.role, self.content)


class StreamOptions(_Body):
    """include_usage: a last chunk that counts tokens."""

    include_usage: bool | None = None


class ChatRequest(_Body):
    """A chat completion request; `parse_chat` makes it."""

    model: str
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: (
        Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=4), BeforeValidator(_stop_list)] | None
    ) = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def token_limit(self) -> int | None:
        """max_completion_tokens, or the older max_tokens."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def with_usage(self) -> bool:
        """Whether a stream is to count its tokens in the end."""
        return bool(self.stream_options and self.stream_options.include_usage)


class Question(_Body):
    """The body of POST /agent. which: the agent before tuning, after it, or both."""

    question: Annotated[str, Field(min_length=1)]
    which: Literal["tuned", "untouched", "both"] = "tuned"


LONGEST = 80
"""Characters of a client's value that an error message repeats."""

B = TypeVar("B", bound=_Body)


def parse_question(body: bytes) -> Question:
    """A question for the whole agent. Raises ApiError."""
    question = _parse(Question, body)
    _refuse_others(question, "", Question)
    return question


def parse_chat(body: bytes) -> ChatRequest:
    """A chat completion request. Raises ApiError for what is malformed or cannot be obeyed."""
    request = _parse(ChatRequest, body)
    for index, message in enumerate(request.messages):
        _refuse_others(message, f"messages[{index}].", ChatMessage)
    if request.stream_options is not None:
        _refuse_others(request.stream_options, "stream_options.", StreamOptions)
    for name, value in request.others().items():
        _check_parameter(name, value)
    if request.max_tokens and request.max_completion_tokens not in (None, request.max_tokens):
        raise ApiError(
            400,
            f"max_tokens = {request.max_tokens} and max_completion_tokens = {request.max_completion_tokens} "
            "contradict each other; send one of them",
            param="max_tokens",
        )
    return request


def _parse(kind: type[B], body: bytes) -> B:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        param = _path(first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise ApiError(400, f"{param or 'the body'}: {message}", param=param or None) from error


def _path(location: tuple[int | str, ...]) -> str:
    """("messages", 0, "content") -> "messages[0].content"."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location).removeprefix(".")


def _check_parameter(name: str, value: object) -> None:
    if name in FREE:
        return
    if name not in NEUTRAL:
        raise _unknown("", name, [*ChatRequest.model_fields, *FREE, *NEUTRAL])
    values, remedy = NEUTRAL[name]
    if value not in values:
        raise ApiError(400, f"{name} = {shown(value)}: {remedy}", code="unsupported_parameter", param=name)


def _refuse_others(body: _Body, where: str, kind: type[_Body]) -> None:
    for name in body.others():
        raise _unknown(where, name, kind.model_fields)


def _unknown(where: str, name: str, known: Any) -> ApiError:
    param = (where + name)[:LONGEST]
    return ApiError(400, str(unknown_name("parameter", param, known)), code="unknown_parameter", param=param)


def shown(value: object) -> str:
    """A value of the client's for an error message, cut where it gets long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
