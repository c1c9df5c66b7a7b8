"""Read the one JSON object of arguments out of a completion: all of it, or an error and nothing.

Policy (RFC 8259 syntax, tightened where readers disagree):
- Text and code fences around the object are ignored, but hold no braces: a second object is an error, never
  a choice. An object inside a top-level array is an error.
- Refused: duplicate keys, NaN and Infinity, integers beyond ±(2**53 − 1) and numbers that overflow
  (RFC 7493), nesting beyond MAX_DEPTH, unescaped control characters, lone surrogates.
- `{"name": ..., "arguments": {...}}`, exactly these keys, is an envelope around the arguments.

Time is linear in the length of the text. Error texts are short and quote only the completion itself, so they
never hold gold.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 32
MAX_INTEGER = 2**53 - 1
_SNIPPET = 20

# A JSON string or one bracket. Group 1 is the closing quote, empty where the text ends first: an unclosed
# string is one token too, so that it is not scanned again from each of its quotes.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[{}\[\]]', re.DOTALL)


@dataclass(frozen=True)
class ParsedCall:
    """Arguments of one tool call; name only if the completion used the envelope."""

    arguments: dict[str, Any]
    name: str | None = None


@dataclass(frozen=True)
class CallError:
    """Why there is no call, in words for the model that wrote it."""

    message: str


class _RefusedError(Exception):
    """Carries the message of a CallError."""


def parse_call(text: str) -> ParsedCall | CallError:
    """The call that a completion holds. Never raises."""
    try:
        start, end = _object_span(text)
        return _unwrap(_decode(text[start:end]))
    except _RefusedError as refusal:
        return CallError(str(refusal))


def _object_span(text: str) -> tuple[int, int]:
    """Start and end of the only top-level object."""
    start = text.find("{")
    if start < 0:
        raise _RefusedError('no JSON object found; write one such as {"key": "value"}')
    if _open_brackets(text[:start]) > 0:
        raise _RefusedError("write one JSON object { }, not an array [ ]")
    end = _object_end(text, start)
    rest = text[end:]
    if "{" in rest:
        raise _RefusedError("more than one JSON object; write exactly one")
    if "}" in rest:
        raise _RefusedError("one closing } too many")
    return start, end


def _open_brackets(prose: str) -> int:
    """Number of [ that are still open at the end of the prose."""
    depth = 0
    for bracket in re.findall(r"[\[\]]", prose):
        depth = depth + 1 if bracket == "[" else max(0, depth - 1)
    return depth


def _object_end(text: str, start: int) -> int:
    """Position after the bracket that closes the object at `start`; whether the kinds match is for json."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        kind = text[token.start()]
        if kind == '"':
            if not token[1]:
                raise _RefusedError('the JSON object is cut off inside a string; close it with " and }')
            continue
        depth += 1 if kind in "{[" else -1
        if depth > MAX_DEPTH:
            raise _RefusedError(
                f"the JSON object is nested too deeply; at most {MAX_DEPTH} levels are allowed"
            )
        if depth == 0:
            return token.end()
    raise _RefusedError("the JSON object is cut off; close it with }")


def _decode(source: str) -> dict[str, Any]:
    """The object as Python values; its depth is already bounded, so json cannot exhaust the stack."""
    try:
        decoded = json.loads(
            source,
            object_pairs_hook=_unique_keys,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        near = source[error.pos : error.pos + _SNIPPET]
        raise _RefusedError(f"not valid JSON: {error.msg.removesuffix(' at')} near {near!r}") from None
    _check_encodable(decoded)
    assert isinstance(decoded, dict)
    return decoded


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique: dict[str, Any] = {}
    for key, value in pairs:
        if key in unique:
            raise _RefusedError(f"key {key[:_SNIPPET]!r} appears twice")
        unique[key] = value
    return unique


def _integer(digits: str) -> int:
    # The length comes first: int() of very many digits is slow, then an error.
    if len(digits) > len(str(-MAX_INTEGER)) or abs(int(digits)) > MAX_INTEGER:
        raise _RefusedError(f"number {digits[:_SNIPPET]} is too large; whole numbers go up to {MAX_INTEGER}")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _RefusedError(f"number {digits[:_SNIPPET]} is too large")
    return value


def _no_constant(name: str) -> None:
    raise _RefusedError(f"{name} is not a JSON number")


def _check_encodable(decoded: object) -> None:
    """Refuse lone surrogates, which no UTF-8 file or reply could hold."""
    try:
        json.dumps(decoded, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _RefusedError(r"a \ud800-\udfff escape stands alone; write the character itself") from None


def _unwrap(decoded: dict[str, Any]) -> ParsedCall:
    """The call inside the envelope, or the object as plain arguments."""
    if decoded.keys() == {"name", "arguments"}:
        name, arguments = decoded["name"], decoded["arguments"]
        if isinstance(name, str) and isinstance(arguments, dict):
            return ParsedCall(arguments, name)
    return ParsedCall(decoded)
