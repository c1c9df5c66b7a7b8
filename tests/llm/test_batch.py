"""The flat arrays of a batch against straightforward loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.llm.batch import ITEM_RUNS, Batch, Run, lay_out
from nograd.llm.kernels import PAGE


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    """Runs sorted by module, each with pages, wanted outputs and copies of its own."""
    found = []
    for module in sorted(draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))):
        start, count = draw(st.integers(0, 70)), draw(st.just(1) | st.integers(1, 70))
        needed = -(-(start + count) // PAGE)
        own = draw(st.lists(st.integers(0, 99), min_size=needed, max_size=8, unique=True))
        common = draw(st.integers(0, min(needed, len(found[-1].pages)))) if found else 0
        pages = [*(found[-1].pages[:common] if common else ()), *own][: max(needed, len(own))]
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


def check_items(batch: Batch, runs: list[Run], item_tokens: int) -> None:
    """Every token is in one item, in order; an item is a piece of one run with all of its pages, or several runs
    of one token each; its shared pages are the same for all of its tokens."""
    covered = []
    for token, count, shared in zip(batch.item_token, batch.item_count, batch.item_shared, strict=True):
        span = range(token, token + count)
        covered += span
        own = {int(batch.row[t]) for t in span}
        assert len({tuple(runs[row].pages[:shared]) for row in own}) == 1
        if len(own) == 1:
            assert count <= item_tokens
            assert count == item_tokens or token + count == len(batch.row) or batch.row[token + count] not in own
            assert shared == batch.positions[span[-1]] // PAGE + 1
        else:
            assert count <= ITEM_RUNS
            assert shared > 0
            assert all(len(runs[row].tokens) == 1 and shared <= len(runs[row].pages) for row in own)
    assert covered == list(range(len(batch.tokens)))


def test_decoding_rows_that_share_pages_attend_together() -> None:
    def row(*pages: int) -> Run:
        return Run((1,), len(pages) * PAGE - 1, pages, 0, 0, (0,))

    alike = [row(1, 2, 3, 10 + i) for i in range(3)]
    batch = lay_out([*alike, row(1, 20), row(30, 31), row(30, 31, 32)], 16)
    assert batch.item_count.tolist() == [3, 1, 2]
    assert batch.item_shared.tolist() == [3, 2, 2]
    many = lay_out([row(1, 2, 3, 10 + i) for i in range(ITEM_RUNS + 1)], 16)
    assert many.item_count.tolist() == [ITEM_RUNS, 1]


@settings(deadline=None, max_examples=150)
@given(runs=runs(), item_tokens=st.integers(1, 80))
def test_against_loops(runs: list[Run], item_tokens: int) -> None:
    batch = lay_out(runs, item_tokens)
    columns: list[list[Any]] = [[] for _ in range(7)]
    tokens, positions, thetas, wanted, writes, rows, modules = columns
    for row, run in enumerate(runs):
        wanted += [len(tokens) + offset for offset in run.wanted]
        for offset, token in enumerate(run.tokens):
            position = run.start + offset
            rows.append(row)
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
    assert batch.row.tolist() == rows
    check_items(batch, runs, item_tokens)
    for row, run in enumerate(runs):
        assert batch.table[row, : len(run.pages)].tolist() == list(run.pages)
    assert batch.table.shape == (len(runs), max(len(run.pages) for run in runs))
    assert [m for m, first, stop in batch.segments for _ in range(first, stop)] == modules
    assert len(batch.segments) == len(set(modules)), "one segment per module"
    arrays = [a for a in vars(batch).values() if isinstance(a, np.ndarray)]
    assert {a.dtype for a in arrays} == {np.dtype(np.int64)}
