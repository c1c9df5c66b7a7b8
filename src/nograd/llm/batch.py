"""One forward pass as flat arrays: every token knows its position, its pages and its θ; there is no padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nograd.llm.delta import Segment
from nograd.llm.kernels import PAGE

Ints = NDArray[np.int64]


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
    table: int64 [R, pages]. item_*: int64 [I], work items of at most `item_tokens` query tokens.
    wanted: int64 [outputs], token indices. segments: one per module present.
    """

    tokens: Ints
    positions: Ints
    theta_row: Ints
    write_start: Ints
    write_page: Ints
    write_slot: Ints
    table: Ints
    item_token: Ints
    item_count: Ints
    item_position: Ints
    item_row: Ints
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
    item_token, item_count, item_row = _items(lengths, firsts, item_tokens)
    return Batch(
        tokens=np.fromiter((t for run in runs for t in run.tokens), dtype=np.int64, count=total),
        positions=positions,
        theta_row=np.repeat(np.array([run.theta for run in runs], dtype=np.int64), lengths),
        write_start=write_start,
        write_page=write_page,
        write_slot=write_slot,
        table=_table(runs),
        item_token=item_token,
        item_count=item_count,
        item_position=positions[item_token],
        item_row=item_row,
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


def _items(lengths: Ints, firsts: Ints, item_tokens: int) -> tuple[Ints, Ints, Ints]:
    pieces = -(-lengths // item_tokens)
    row = np.repeat(np.arange(len(lengths), dtype=np.int64), pieces)
    number = np.arange(len(row), dtype=np.int64) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    token = firsts[row] + number * item_tokens
    count = np.minimum(item_tokens, lengths[row] - number * item_tokens)
    return token, count, row


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
