"""Pages of keys and values, counted by reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kernels import architecture

from nograd.llm.kernels import PAGE
from nograd.llm.pages import PagePool, pages_for

CPU = torch.device("cpu")


def pool(pages: int, dtype: torch.dtype = torch.float32) -> PagePool:
    return PagePool(architecture(32, 2, 1, 32, False), pages, CPU, dtype)


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
        mine = pool(3, dtype)
        size = (mine.keys.nbytes + mine.values.nbytes) // 3
        assert PagePool.page_bytes(architecture(32, 2, 1, 32, False), CPU, dtype) == size
        assert mine.keys.dtype == torch.float32, "the CPU kernels compute in float32"


def test_pages_for() -> None:
    counts = np.arange(0, 4 * PAGE)
    assert [pages_for(int(n)) for n in counts] == np.ceil(counts / PAGE).astype(int).tolist()
