"""Text that is sent in pieces: joined it is the text, however the tokens came, and nothing is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.serve.writer import Writer


def decode(tokens: Sequence[int]) -> str:
    """Tokens are bytes, as at the bottom of a byte-level tokenizer."""
    return bytes(tokens).decode("utf-8", "replace")


def reference(text: str, stop: Sequence[str]) -> str:
    """Character by character: the text before the first stop string to be complete."""
    for end in range(1, len(text) + 1):
        starts = [end - len(string) for string in stop if text[:end].endswith(string)]
        if starts:
            return text[: min(starts)]
    return text


def cuts(text: str, data: st.DataObject) -> list[list[int]]:
    tokens = list(text.encode())
    places = sorted(data.draw(st.sets(st.integers(0, len(tokens)))) | {0, len(tokens)})
    return [tokens[a:b] for a, b in pairwise(places)] or [[]]


@settings(deadline=None)
@given(st.text("abcä€😀", max_size=20), st.lists(st.text("abc€", min_size=1, max_size=3), max_size=3), st.data())
def test_pieces_are_the_text_before_the_first_stop(text: str, stop: list[str], data: st.DataObject) -> None:
    writer = Writer(decode, stop)
    additions = cuts(text, data)
    sent = ""
    for number, tokens in enumerate(additions):
        sent += writer.add(tokens, last=number == len(additions) - 1)
        if writer.stopped:
            break
    expected = reference(text, stop)
    assert sent == expected
    assert writer.stopped == any(string in text for string in stop)
    whole = Writer(decode, stop)
    whole.add(list(text.encode()), last=True)
    assert whole.count == writer.count
    if writer.stopped:
        used = text.encode()[: writer.count].decode()
        assert used.startswith(expected)
        assert any(used.endswith(string) for string in stop)


@pytest.mark.parametrize(
    ("stop", "text", "sent"),
    [
        ([], "abc", "abc"),
        (["x"], "abc", "abc"),
        (["cde"], "abc", "ab"),
        (["bx", "cx"], "abc", "ab"),
        (["\n\n"], "a\n", "a"),
        (["aab"], "aaa", "a"),
    ],
)
def test_only_what_may_become_a_stop_is_held_back(stop: list[str], text: str, sent: str) -> None:
    writer = Writer(decode, stop)
    assert writer.add(list(text.encode()), last=False) == sent
    assert writer.add([], last=True) == text[len(sent) :]


def test_an_incomplete_character_is_held_back_until_the_end() -> None:
    writer = Writer(decode)
    assert writer.add("a€".encode()[:3], last=False) == "a"
    assert writer.add("a€".encode()[3:], last=False) == "€"
    assert writer.add("😀".encode()[:2], last=True) == "\ufffd"


@pytest.mark.parametrize(("stop", "text"), [(["bcd", "c"], "ab"), (["cd", "bcd"], "a"), (["d"], "abc")])
def test_within_one_token_the_first_stop_to_be_complete_counts(stop: list[str], text: str) -> None:
    writer = Writer(lambda tokens: "abcde" * len(tokens), stop)
    assert writer.add([0], last=False) == text == reference("abcde", stop)
    assert writer.count == 1
