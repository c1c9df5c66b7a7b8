"""Keyed randomness: a key names an independent generator; nothing depends on order (DESIGN §3.5)."""

from __future__ import annotations

import hashlib
import operator

import numpy as np


def stream(seed: int, *key: str | int) -> np.random.Generator:
    """The generator of this seed and key; the same key always gives a fresh generator at its start.

    Distinct keys give independent streams: ("a", "bc") ≠ ("ab", "c"), 1 ≠ "1"; integers may be negative
    and of any size. Raises TypeError for a part that is neither text nor an integer.
    """
    digest = hashlib.sha256(b"".join(_encode(part) for part in (operator.index(seed), *key))).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def _encode(part: str | int) -> bytes:
    """Type tag, length, content: no two sequences of parts share an encoding."""
    if isinstance(part, str):
        tag, content = b"s", part.encode("utf-8", "surrogatepass")
    else:
        tag, content = b"i", str(operator.index(part)).encode("ascii")
    return tag + len(content).to_bytes(8, "big") + content
