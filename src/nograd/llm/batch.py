"""One forward pass as flat arrays: every token knows its position, its pages and its θ; there is no padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nograd.llm.delta import Segment
from nograd.llm.kernels import PAGE

Ints = NDArray[np.int64]
ITEM_RUNS = 8
"""Most decoding rows that attend together."""


@dataclass(frozen=True)
class Run:
    """Consecutive tokens of one sequence.

    tokens at positions start, start + 1, …; pages: the page of every position up to the last token.
    copies: [(first, stop, page)]: further pages that want these positions. store: whether keys and values are
    written (not when they are already there and only the output is wanted).
    theta: row of the coefficient matrix; module: whose coefficients these are.
    wanted: offsets of the tokens whose output is wanted.
    """

    tokens: Sequence[int]
    start: int
    pages: Sequence[int]
    theta: int
    module: int
    wanted: Sequence[int]
    copies: Sequence[tuple[int, int, int]] = ()
    store: bool = True


@dataclass(frozen=True)
class Batch:
    """Runs laid end to end (sorted by module by the caller). Shapes: T tokens, W writes, R runs, I items.

    tokens, positions, theta_row: int64 [T]. write_start: int64 [T + 1], write_page, write_slot: int64 [W].
    table: int64 [R, pages]; row: int64 [T], each token's row in it. item_*: int64 [I], work items: so many
    consecutive tokens whose first `item_shared` pages are the same. wanted: int64 [outputs], token indices.
    segments: one per module present.
    """

    tokens: Ints
    positions: Ints
    theta_row: Ints
    write_start: Ints
    write_page: Ints
    write_slot: Ints
    table: Ints
    row: Ints
    item_token: Ints
    item_count: Ints
    item_shared: Ints
    wanted: Ints
    segments: tuple[Segment, ...]

    def padded_to(self, rows: int) -> Batch:
        """With idle tokens appended up to `rows`: they write nothing, and nothing attends for them."""
        missing = rows - len(self.tokens)
        if missing <= 0:
            return self
        module, first, _ = self.segments[-1]
        return replace(
            self,
            tokens=np.pad(self.tokens, (0, missing)),
            positions=np.pad(self.positions, (0, missing)),
            theta_row=np.pad(self.theta_row, (0, missing)),
            write_start=np.pad(self.write_start, (0, missing), mode="edge"),
            segments=(*self.segments[:-1], (module, first, rows)),
        )


def lay_out(runs: Sequence[Run], item_tokens: int) -> Batch:
    """The arrays of these runs."""
    lengths = np.array([len(run.tokens) for run in runs], dtype=np.int64)
    firsts = np.concatenate(([0], np.cumsum(lengths)))
    starts = np.array([run.start for run in runs], dtype=np.int64)
    total = int(firsts[-1])
    positions = np.arange(total, dtype=np.int64) + np.repeat(starts - firsts[:-1], lengths)
    write_start, write_page, write_slot = _writes(runs, firsts, total)
    item_token, item_count, item_shared = _items(runs, firsts, item_tokens)
    return Batch(
        tokens=np.fromiter((t for run in runs for t in run.tokens), dtype=np.int64, count=total),
        positions=positions,
        theta_row=np.repeat(np.array([run.theta for run in runs], dtype=np.int64), lengths),
        write_start=write_start,
        write_page=write_page,
        write_slot=write_slot,
        table=_table(runs),
        row=np.repeat(np.arange(len(runs), dtype=np.int64), lengths),
        item_token=item_token,
        item_count=item_count,
        item_shared=item_shared,
        wanted=np.fromiter(
            (
                int(first) + offset
                for run, first in zip(runs, firsts[:-1], strict=True)
                for offset in run.wanted
            ),
            dtype=np.int64,
        ),
        segments=_segments(runs, firsts),
    )


def _table(runs: Sequence[Run]) -> Ints:
    table = np.zeros((len(runs), max(len(run.pages) for run in runs)), dtype=np.int64)
    for row, run in zip(table, runs, strict=True):
        row[: len(run.pages)] = run.pages
    return table


def _items(runs: Sequence[Run], firsts: Ints, item_tokens: int) -> tuple[Ints, Ints, Ints]:
    """Tokens, counts and shared pages of the work items: a run in pieces of at most `item_tokens`, or several
    runs of one token whose pages begin alike."""
    token, count, shared = [], [], []
    number = 0
    while number < len(runs):
        run, first = runs[number], int(firsts[number])
        joined, common = _alike(runs[number : number + ITEM_RUNS])
        if joined > 1:
            token.append(first)
            count.append(joined)
            shared.append(common)
        else:
            for piece in range(0, len(run.tokens), item_tokens):
                stop = min(piece + item_tokens, len(run.tokens))
                token.append(first + piece)
                count.append(stop - piece)
                shared.append((run.start + stop - 1) // PAGE + 1)
        number += joined
    return np.array(token, dtype=np.int64), np.array(count, dtype=np.int64), np.array(shared, dtype=np.int64)


def _alike(runs: Sequence[Run]) -> tuple[int, int]:
    """How many of these runs are one token each and begin with the same pages, and how many pages that is: as
    many runs as keep at least half of the pages that the first two share."""
    if len(runs[0].tokens) != 1:
        return 1, 0
    kept = 0
    for joined, run in enumerate(runs[1:], 1):
        common = _common_pages(runs[0].pages, run.pages) if len(run.tokens) == 1 else 0
        if common == 0 or 2 * common < kept:
            return joined, kept
        kept = min(kept, common) if kept else common
    return len(runs), kept


def _common_pages(one: Sequence[int], other: Sequence[int]) -> int:
    for number, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return number
    return min(len(one), len(other))


def _writes(runs: Sequence[Run], firsts: Ints, total: int) -> tuple[Ints, Ints, Ints]:
    """Places to write each token's key and value to, ordered by token."""
    token, page, slot = [], [], []
    for run, first in zip(runs, firsts[:-1], strict=True):
        if not run.store:
            continue
        position = np.arange(run.start, run.start + len(run.tokens))
        token.append(first + position - run.start)
        page.append(np.asarray(run.pages, dtype=np.int64)[position // PAGE])
        slot.append(position % PAGE)
        for begin, stop, target in run.copies:
            position = np.arange(max(begin, run.start), min(stop, run.start + len(run.tokens)))
            token.append(first + position - run.start)
            page.append(np.full(len(position), target, dtype=np.int64))
            slot.append(position % PAGE)
    if not token:
        return np.zeros(total + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    owner = np.concatenate(token)
    order = np.argsort(owner, kind="stable")
    start = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=total))))
    return start, np.concatenate(page)[order], np.concatenate(slot)[order]


def _segments(runs: Sequence[Run], firsts: Ints) -> tuple[Segment, ...]:
    found: list[Segment] = []
    for run, first, stop in zip(runs, firsts[:-1], firsts[1:], strict=True):
        if found and found[-1][0] == run.module:
            found[-1] = (run.module, found[-1][1], int(stop))
        else:
            found.append((run.module, int(first), int(stop)))
    return tuple(found)
