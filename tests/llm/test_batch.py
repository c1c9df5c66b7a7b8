"""The flat arrays of a batch against straightforward loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.llm.batch import Run, lay_out
from nograd.llm.kernels import PAGE


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    """Runs sorted by module, each with pages, wanted outputs and copies of its own."""
    found = []
    for module in sorted(draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))):
        start, count = draw(st.integers(0, 70)), draw(st.integers(1, 70))
        pages = draw(
            st.lists(st.integers(0, 99), min_size=-(-(start + count) // PAGE), max_size=8, unique=True)
        )
        wanted = draw(st.lists(st.integers(0, count - 1), max_size=4))
        span = st.tuples(st.integers(0, 150), st.integers(0, 150), st.integers(100, 199))
        copies = [(min(a, b), max(a, b), page) for a, b, page in draw(st.lists(span, max_size=2))]
        found.append(
            Run(
                tokens=draw(st.lists(st.integers(0, 999), min_size=count, max_size=count)),
                start=start,
                pages=pages,
                theta=draw(st.integers(0, 5)),
                module=module,
                wanted=wanted,
                copies=copies,
                store=draw(st.booleans()),
            )
        )
    return found


@settings(deadline=None, max_examples=150)
@given(runs=runs(), item_tokens=st.integers(1, 80))
def test_against_loops(runs: list[Run], item_tokens: int) -> None:
    batch = lay_out(runs, item_tokens)
    columns: list[list[Any]] = [[] for _ in range(7)]
    tokens, positions, thetas, wanted, writes, items, modules = columns
    for row, run in enumerate(runs):
        wanted += [len(tokens) + offset for offset in run.wanted]
        for offset, token in enumerate(run.tokens):
            position = run.start + offset
            if offset % item_tokens == 0:
                count = min(item_tokens, len(run.tokens) - offset)
                items.append((len(tokens), count, position, row))
            places = [(run.pages[position // PAGE], position % PAGE)] if run.store else []
            for first, stop, page in run.copies if run.store else ():
                if first <= position < stop:
                    places.append((page, position % PAGE))
            writes.append(sorted(places))
            tokens.append(token)
            positions.append(position)
            thetas.append(run.theta)
            modules.append(run.module)

    assert batch.tokens.tolist() == tokens
    assert batch.positions.tolist() == positions
    assert batch.theta_row.tolist() == thetas
    assert batch.wanted.tolist() == wanted
    places_of = zip(batch.write_start[:-1], batch.write_start[1:], strict=True)
    pairs = list(zip(batch.write_page.tolist(), batch.write_slot.tolist(), strict=True))
    assert [sorted(pairs[a:b]) for a, b in places_of] == writes
    assert batch.write_start[-1] == len(pairs)
    found = (batch.item_token, batch.item_count, batch.item_position, batch.item_row)
    assert list(zip(*(a.tolist() for a in found), strict=True)) == items
    for row, run in enumerate(runs):
        assert batch.table[row, : len(run.pages)].tolist() == list(run.pages)
    assert batch.table.shape == (len(runs), max(len(run.pages) for run in runs))
    assert [m for m, first, stop in batch.segments for _ in range(first, stop)] == modules
    assert len(batch.segments) == len(set(modules)), "one segment per module"
    arrays = [a for a in vars(batch).values() if isinstance(a, np.ndarray)]
    assert {a.dtype for a in arrays} == {np.dtype(np.int64)}
