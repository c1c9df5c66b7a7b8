"""What a server takes on at most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """requests: answered or waiting at once, more are refused with 429. max_tokens: of one completion.
    timeout: seconds until a request is given up. body_bytes: of one request."""

    requests: int = 64
    max_tokens: int = 512
    timeout: float = 120.0
    body_bytes: int = 1 << 20
