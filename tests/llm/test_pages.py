"""Pages of keys and values, counted by reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kernels import architecture, as_words

from nograd.llm.kernels import PAGE
from nograd.llm.pages import PagePool, pages_for

CPU = torch.device("cpu")


def pool(pages: int, dtype: torch.dtype = torch.float32, *, words: bool = False) -> PagePool:
    return PagePool(architecture(32, 2, 1, 32, False), pages, CPU, dtype, words=words)


@settings(deadline=None, max_examples=60)
@given(steps=st.lists(st.tuples(st.sampled_from(["take", "share", "release", "reset"]), st.integers(0, 99))))
def test_holders_are_counted(steps: list[tuple[str, int]]) -> None:
    mine, held = pool(6), list[int]()
    for action, number in steps:
        if action == "take" and mine.available:
            page = mine.take()
            assert page not in held
            held.append(page)
        elif action == "share" and held:
            page = held[number % len(held)]
            mine.share([page])
            held.append(page)
        elif action == "release" and held:
            mine.release([held.pop(number % len(held))])
        elif action == "reset":
            mine.reset()
            held = []
        assert mine.available == 6 - len(set(held))


def test_an_empty_pool_says_so() -> None:
    mine = pool(2)
    pages = [mine.take(), mine.take()]
    with pytest.raises(AssertionError, match="exhausted"):
        mine.take()
    mine.release(pages)
    assert {mine.take(), mine.take()} == set(pages)


def test_copy_takes_the_first_slots_of_every_layer() -> None:
    mine = pool(2)
    source, target = mine.take(), mine.take()
    mine.keys.normal_()
    mine.values.normal_()
    before = mine.keys.clone(), mine.values.clone()
    mine.copy(source, target, 7)
    assert torch.equal(mine.keys[:, target, :, :, :7], before[0][:, source, :, :, :7])
    assert torch.equal(mine.values[:, target, :, :7], before[1][:, source, :, :7])
    assert torch.equal(mine.keys[:, target, :, :, 7:], before[0][:, target, :, :, 7:])
    assert torch.equal(mine.values[:, target, :, 7:], before[1][:, target, :, 7:])


def test_bytes_of_a_page_are_those_of_its_tensors() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        for words in (False, True):
            mine = pool(3, dtype, words=words)
            size = (mine.keys.nbytes + mine.values.nbytes) // 3
            assert PagePool.page_bytes(architecture(32, 2, 1, 32, False), dtype) == size


@settings(deadline=None, max_examples=40)
@given(slots=st.integers(0, PAGE), seed=st.integers(0, 99))
def test_words_are_copied_as_floats_are(slots: int, seed: int) -> None:
    """The same keys and values in both layouts: the same copy."""
    plain, words = pool(2, torch.bfloat16), pool(2, torch.bfloat16, words=True)
    pages = [plain.take(), plain.take(), words.take(), words.take()][:2]
    generator = torch.Generator().manual_seed(seed)
    for tensor in (plain.keys, plain.values):
        tensor.copy_(torch.randn(tensor.shape, generator=generator))
    words.keys.copy_(as_words(plain.keys))
    words.values.copy_(as_words(plain.values))
    for mine in (plain, words):
        mine.copy(*pages, slots)
    assert torch.equal(words.keys, as_words(plain.keys))
    assert torch.equal(words.values, as_words(plain.values))


def test_pages_for() -> None:
    counts = np.arange(0, 4 * PAGE)
    assert [pages_for(int(n)) for n in counts] == np.ceil(counts / PAGE).astype(int).tolist()
