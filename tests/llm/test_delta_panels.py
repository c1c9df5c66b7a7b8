"""All modules' deltas in one call: the bits of the modules one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.llm.delta_panels import DeltaPanels, places
from nograd.llm.panels import Panels
from nograd.llm.tile import multiplies_words

pytestmark = pytest.mark.skipif(not multiplies_words(), reason="no bfloat16 words here")


@settings(deadline=None, max_examples=30)
@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=4), padding=st.integers(0, 5), seed=st.integers(0, 99))
def test_equal_to_module_by_module(lengths: list[int], padding: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator).bfloat16()

    rows = max(sum(lengths) + padding, 8)
    stops = np.cumsum(lengths).tolist()
    segments = [(module, stop - length, stop) for module, (length, stop) in enumerate(zip(lengths, stops, strict=True))]
    into, out_of = ([Panels(normal(*shape)) for _ in lengths] for shape in ((64, 96), (160, 64)))
    x, theta, y = normal(rows, 96), normal(rows, 64), normal(rows, 160)
    expected = y.clone()
    for module, first, stop in segments:
        expected = out_of[module].add_rows(into[module].rows_times(x, theta, first, stop), expected, first, stop)
    kept = theta.clone()
    found = DeltaPanels(into, out_of).add(x, y, theta, places(segments))
    assert torch.equal(found, expected)
    assert torch.equal(theta, kept)


def test_blocks_cover_every_row_once_and_stay_in_their_segment() -> None:
    blocks = places([(2, 0, 17), (0, 17, 18)]).blocks.tolist()
    assert blocks == [[2, 0, 8], [2, 8, 16], [2, 16, 17], [0, 17, 18]]
