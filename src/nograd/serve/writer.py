"""From growing token sequences to pieces of text that can be sent and never have to be taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_INCOMPLETE = "\ufffd"
"""What a tokenizer makes of the first bytes of a character whose others are still to come."""


class Writer:
    """decode: token ids -> text. stop: strings that end the text and are no part of it.

    The pieces of `add`, joined, are the text up to the first stop string to be completed, however the tokens were
    cut into additions. Held back until it is decided: an incomplete character, and the beginning of a stop string.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], stop: Sequence[str] = ()) -> None:
        self._decode, self._stop = decode, tuple(stop)
        self._tokens: tuple[int, ...] = ()
        self._sent = 0
        self.stopped = False

    @property
    def count(self) -> int:
        """Tokens that the text took, those of the stop string included."""
        return len(self._tokens)

    def add(self, tokens: Sequence[int], last: bool) -> str:
        """Take further tokens; the text that can be sent now. last: nothing follows."""
        for token in tokens if self._stop else ():
            self._tokens += (token,)
            text = self._decode(self._tokens)
            end = _stop_position(text, self._stop)
            if end is not None:
                self.stopped = True
                return self._send(text[:end])
        if not self._stop:
            self._tokens += tuple(tokens)
        text = self._decode(self._tokens)
        return self._send(text if last else text[: _decided(text, self._stop)])

    def _send(self, text: str) -> str:
        piece = text[self._sent :]
        self._sent += len(piece)
        return piece


def _stop_position(text: str, stop: Sequence[str]) -> int | None:
    """Where the text ends if it contains a stop string: the start of the one that is complete first."""
    found = [(text.find(string) + len(string), text.find(string)) for string in stop if string in text]
    return min(found)[1] if found else None


def _decided(text: str, stop: Sequence[str]) -> int:
    """Length of the text that no further token changes or turns into a stop string."""
    text = text.rstrip(_INCOMPLETE)
    longest = max(map(len, stop), default=0)
    for start in range(max(0, len(text) - longest + 1), len(text)):
        if any(string.startswith(text[start:]) for string in stop):
            return start
    return len(text)
