"""CPU kernels for what a decoder does between its matrix products: norm, rotation, attention, log-probability.

Every output is computed in one fixed order from its own inputs alone, in float32 inside, so the bits of a row
do not depend on its company. bfloat16 arrays come in as uint16 views. The plain forms are in `reference.py`;
tests compare the two.

Where the CPU multiplies bfloat16 words (`tile.py`), attention takes queries, keys and values as words, each two
values that are half of their axis apart: word i of a head holds dimensions i and i + dim / 2, word j of a page
of values positions j and j + PAGE / 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange, types
from numba.extending import overload

from nograd.llm.rotation import rotate_16
from nograd.llm.scalars import FAST, LOG2E, exp2, load, store, word
from nograd.llm.softmax import MASKED, softmax_row
from nograd.llm.tile import COLUMNS, multiply_4, multiply_8, multiply_add_4, multiply_add_8
from nograd.llm.vectors import LANES

_ROWS, _FEW_ROWS = 8, 4
_multiply: Any = multiply_8
_multiply_add: Any = multiply_add_8
_multiply_few: Any = multiply_4
_multiply_add_few: Any = multiply_add_4
_softmax_row: Any = softmax_row
_rotate_16: Any = rotate_16

PAGE = COLUMNS
"""Tokens in one page of the key-value cache."""

ITEM_TOKENS = 16
"""Query tokens in one work item of `attend`."""

_HALF_PAGE = PAGE // 2

_MASKED = np.float32(MASKED)
_ONE = np.float32(1)
_ZERO = np.float32(0)


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def rms_norm(x: Any, weight: Any, eps: Any, out: Any) -> None:
    """out[t] = x[t] / rms(x[t]) ∘ weight. x, out: [tokens, hidden], float32 or bfloat16 bits; weight float32."""
    tokens, hidden = x.shape
    for t in prange(tokens):
        lanes = np.zeros(16, np.float32)
        for block in range(hidden // 16):
            for lane in range(16):
                value = load(x[t, block * 16 + lane])
                lanes[lane] += value * value
        total = _ZERO
        for lane in range(16):
            total += lanes[lane]
        for i in range(hidden // 16 * 16, hidden):
            value = load(x[t, i])
            total += value * value
        scale = _ONE / np.sqrt(total / np.float32(hidden) + eps)
        for i in range(hidden):
            store(out, t, i, load(x[t, i]) * scale * weight[i])


@njit(inline="always", fastmath=FAST, error_model="numpy")
def _head(
    qkv: Any, t: Any, offset: Any, norm: Any, eps: Any, cos: Any, sin: Any, position: Any, out: Any
) -> None:
    """out = one head of qkv[t], normed if `norm` has weights, rotated by its position (half-split pairs)."""
    dim = out.shape[0]
    for i in range(dim):
        out[i] = load(qkv[t, offset + i])
    if norm.shape[0] > 0:
        total = _ZERO
        for i in range(dim):
            total += out[i] * out[i]
        scale = _ONE / np.sqrt(total / np.float32(dim) + eps)
        for i in range(dim):
            out[i] = out[i] * scale * norm[i]
    half = cos.shape[1]
    for i in range(half):
        first, second = out[i], out[i + half]
        c, s = cos[position, i], sin[position, i]
        out[i] = first * c - second * s
        out[i + half] = second * c + first * s


def _put_query(
    queries: Any, t: Any, h: Any, qkv: Any, norm: Any, eps: Any, cos: Any, sin: Any, position: Any, factor: Any,
    head: Any,
) -> Any:  # fmt: skip
    """queries[t, h] = head h of qkv[t], normed and rotated, times factor. head: float32 [dim], scratch."""
    raise NotImplementedError


@overload(_put_query, inline="always", strict=False)
def _put_query_overload(
    queries: Any, t: Any, h: Any, qkv: Any, norm: Any, eps: Any, cos: Any, sin: Any, position: Any, factor: Any,  # noqa: ARG001
    head: Any,  # noqa: ARG001
) -> Any:  # fmt: skip
    if queries.dtype == types.uint32:

        def put_words(
            queries: Any, t: Any, h: Any, qkv: Any, norm: Any, eps: Any, cos: Any, sin: Any, position: Any,
            factor: Any, head: Any,
        ) -> Any:  # fmt: skip
            half = queries.shape[2]
            at = h * 2 * half
            if norm.shape[0] == 0 and cos.shape[1] == half:
                lines = queries.reshape(-1, half)
                for i in range(0, half, LANES):
                    _rotate_16(
                        qkv, t, at + i, at + half + i, cos, sin, position, i, factor,
                        lines, t * queries.shape[1] + h,
                    )  # fmt: skip
            else:
                _head(qkv, t, at, norm, eps, cos, sin, position, head)
                for i in range(half):
                    queries[t, h, i] = word(head[i] * factor, head[i + half] * factor)

        return put_words

    def put_floats(
        queries: Any, t: Any, h: Any, qkv: Any, norm: Any, eps: Any, cos: Any, sin: Any, position: Any, factor: Any,
        head: Any,
    ) -> Any:  # fmt: skip
        dim = queries.shape[2]
        _head(qkv, t, h * dim, norm, eps, cos, sin, position, head)
        for i in range(dim):
            queries[t, h, i] = head[i] * factor

    return put_floats


def _put_pair(keys: Any, values: Any, page: Any, h: Any, slot: Any, key: Any, qkv: Any, t: Any, at: Any) -> Any:
    """Write a key [dim] and the value qkv[t, at:] to a slot of a page."""
    raise NotImplementedError


@overload(_put_pair, inline="always", strict=False)
def _put_pair_overload(
    keys: Any,
    values: Any,  # noqa: ARG001
    page: Any,  # noqa: ARG001
    h: Any,  # noqa: ARG001
    slot: Any,  # noqa: ARG001
    key: Any,  # noqa: ARG001
    qkv: Any,  # noqa: ARG001
    t: Any,  # noqa: ARG001
    at: Any,  # noqa: ARG001
) -> Any:
    if keys.dtype == types.uint32:

        def put_words(
            keys: Any, values: Any, page: Any, h: Any, slot: Any, key: Any, qkv: Any, t: Any, at: Any
        ) -> Any:
            half = keys.shape[2]
            for i in range(half):
                keys[page, h, i, slot] = word(key[i], key[i + half])
            line, side = slot % _HALF_PAGE, slot // _HALF_PAGE
            for i in range(2 * half):
                values[page, h, line, i, side] = qkv[t, at + i]

        return put_words

    def put_floats(
        keys: Any, values: Any, page: Any, h: Any, slot: Any, key: Any, qkv: Any, t: Any, at: Any
    ) -> Any:
        for i in range(key.shape[0]):
            keys[page, h, i, slot] = key[i]
            values[page, h, slot, i] = load(qkv[t, at + i])

    return put_floats


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def rotate_and_store(
    qkv: Any,
    positions: Any,
    cos: Any,
    sin: Any,
    q_norm: Any,
    k_norm: Any,
    eps: Any,
    scale: Any,
    write_start: Any,
    write_page: Any,
    write_slot: Any,
    queries: Any,
    keys: Any,
    values: Any,
) -> None:
    """Rotate queries and keys, and write keys and values to every place that will read them.

    qkv: [tokens, (heads + 2 · kv_heads) · dim]. Token t goes to (write_page[w], write_slot[w]) for w in
    write_start[t] .. write_start[t + 1]. scale: of the scores; queries are kept times scale · log2(e).
    In float32: queries [tokens, heads, dim], keys [pages, kv_heads, dim, PAGE], values [pages, kv_heads, PAGE, dim].
    In words: queries uint32 [tokens, heads, dim / 2], keys uint32 [pages, kv_heads, dim / 2, PAGE], values uint16
    [pages, kv_heads, PAGE / 2, dim, 2].
    """
    tokens, heads = queries.shape[:2]
    dim = qkv.shape[1] // (heads + 2 * keys.shape[1])
    kv_heads = keys.shape[1]
    factor = scale * LOG2E
    for t in prange(tokens):
        position = positions[t]
        head = np.empty(dim, np.float32)
        for h in range(heads):
            _put_query(queries, t, h, qkv, q_norm, eps, cos, sin, position, factor, head)
        for h in range(kv_heads):
            _head(qkv, t, (heads + h) * dim, k_norm, eps, cos, sin, position, head)
            value_at = (heads + kv_heads + h) * dim
            for w in range(write_start[t], write_start[t + 1]):
                _put_pair(keys, values, write_page[w], h, write_slot[w], head, qkv, t, value_at)


def _mended(lines: Any, first: Any, visible: Any, copy: Any) -> Any:
    """Whether words of a page's values hold slots from `visible` on beside earlier ones; if so, fills `copy` with
    the words without those slots: 0 times what another sequence left there may be NaN."""
    raise NotImplementedError


@overload(_mended, inline="always", strict=False)
def _mended_overload(lines: Any, first: Any, visible: Any, copy: Any) -> Any:  # noqa: ARG001
    if lines.dtype == types.uint32:

        def mend(lines: Any, first: Any, visible: Any, copy: Any) -> Any:
            if visible < PAGE:
                for j in range(min(visible, _HALF_PAGE)):
                    keep = np.uint32(0xFFFF) + np.uint32(0xFFFF0000) * np.uint32(j + _HALF_PAGE < visible)
                    for i in range(lines.shape[1]):
                        copy[j, i] = lines[first + j, i] & keep
            return visible < PAGE

        return mend
    return lambda lines, first, visible, copy: False  # noqa: ARG005


@njit(inline="always", fastmath=FAST, error_model="numpy")
def _attend_page(
    few: Any,
    asked: Any,
    sums: Any,
    largest: Any,
    total: Any,
    newest: Any,
    first: Any,
    start: Any,
    key_lines: Any,
    value_lines: Any,
    line: Any,
    scores: Any,
    weights: Any,
    copy: Any,
) -> None:
    """Fold the page whose first position is `start`, number `line` among all heads' pages, into the state of
    the queries first, first + 1, …: four if `few`, else eight. newest: the last position that a query sees."""
    rows = _FEW_ROWS if few else _ROWS
    depth: Any = np.int64(0)
    for a in range(first, first + rows):
        depth = max(depth, min(PAGE, newest[a] - start + 1))
    if depth <= 0:
        return
    width, dim = asked.shape[1], sums.shape[1]
    if few:
        _multiply_few(asked, first, key_lines, line * width, 0, scores, 0, 0, width)
    else:
        _multiply(asked, first, key_lines, line * width, 0, scores, 0, 0, width)
    for a in range(rows):
        move = _softmax_row(scores, a, newest[first + a] - start + 1, largest, total, first + a, weights)
        if move != _ZERO and start > 0:
            shrink = exp2(move)
            for i in range(dim):
                sums[first + a, i] *= shrink
    lines = weights.shape[1]
    at = line * lines
    if _mended(value_lines, at, depth, copy):
        for column in range(0, dim, COLUMNS):
            if few:
                _multiply_add_few(weights, 0, copy, 0, column, sums, first, column, min(lines, depth))
            else:
                _multiply_add(weights, 0, copy, 0, column, sums, first, column, min(lines, depth))
    else:
        for column in range(0, dim, COLUMNS):
            if few:
                _multiply_add_few(weights, 0, value_lines, at, column, sums, first, column, min(lines, depth))
            else:
                _multiply_add(weights, 0, value_lines, at, column, sums, first, column, min(lines, depth))


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def attend(
    queries: Any,
    keys: Any,
    values: Any,
    table: Any,
    positions: Any,
    rows: Any,
    item_token: Any,
    item_count: Any,
    item_shared: Any,
    threads: Any,
    out: Any,
) -> None:
    """Causal attention of query tokens over paged keys and values, page by page with a running softmax.

    Token t sees positions 0 .. positions[t] in the pages table[rows[t]]. An item is `item_count` consecutive
    tokens from `item_token`, whose first `item_shared` pages are the same: these are read once for all of them,
    further ones token by token. Which tokens make up an item changes no bits: every query folds its own pages
    in their order. The heads that share a key-value head are handled together. dim is a multiple of 32.
    Threads take turns at the items, as those that lie together are of a kind. queries, keys: as
    `rotate_and_store` fills them; values: float32 as there, or uint32 [pages, kv_heads, PAGE / 2, dim]; out:
    [tokens, heads · dim], float32 or bfloat16 bits.
    """
    items = item_token.shape[0]
    heads, width = queries.shape[1:]
    kv_heads, dim = values.shape[1], values.shape[3]
    group = heads // kv_heads
    padded = (group + _FEW_ROWS - 1) // _FEW_ROWS * _FEW_ROWS
    key_lines = keys.reshape(-1, PAGE)
    value_lines = values.reshape(-1, dim)
    share = (kv_heads * items + threads - 1) // threads
    for turn in prange(share * threads):
        work = turn % share * threads + turn // share
        if work >= kv_heads * items:
            continue
        h, item = work % kv_heads, work // kv_heads
        first, count, shared = item_token[item], item_count[item], item_shared[item]
        scores = np.empty((_ROWS, PAGE), np.float32)
        weights = np.empty((_ROWS, PAGE * width // dim), queries.dtype)
        copy = np.empty((PAGE * width // dim, dim), queries.dtype)

        blocks = (count * group + _ROWS - 1) // _ROWS
        asked = np.zeros((blocks * _ROWS, width), queries.dtype)
        sums = np.zeros((blocks * _ROWS, dim), np.float32)
        largest = np.full(blocks * _ROWS, _MASKED, np.float32)
        total = np.zeros((blocks * _ROWS, LANES), np.float32)
        newest = np.full(blocks * _ROWS, -1, np.int64)
        for a in range(count * group):
            newest[a] = positions[first + a // group]
            for i in range(width):
                asked[a, i] = queries[first + a // group, h * group + a % group, i]
        for p in range(shared):
            line = table[rows[first], p] * kv_heads + h
            for block in range(blocks):
                _attend_page(
                    False, asked, sums, largest, total, newest, block * _ROWS, p * PAGE,
                    key_lines, value_lines, line, scores, weights, copy,
                )  # fmt: skip

        alone = False
        for t in range(first, first + count):
            alone |= positions[t] // PAGE >= shared
        own = padded if alone else 0
        own_asked = np.zeros((own, width), queries.dtype)
        own_sums = np.zeros((own, dim), np.float32)
        own_largest = np.full(own, _MASKED, np.float32)
        own_total = np.zeros((own, LANES), np.float32)
        own_newest = np.full(own, -1, np.int64)
        for token in range(count):
            t, start = first + token, token * group
            pages = positions[t] // PAGE + 1
            if pages > shared:
                for a in range(group):
                    own_asked[a], own_sums[a] = asked[start + a], sums[start + a]
                    own_largest[a], own_total[a] = largest[start + a], total[start + a]
                    own_newest[a] = positions[t]
                for p in range(shared, pages):
                    line = table[rows[t], p] * kv_heads + h
                    for block in range(0, padded, _FEW_ROWS):
                        _attend_page(
                            True, own_asked, own_sums, own_largest, own_total, own_newest, block, p * PAGE,
                            key_lines, value_lines, line, scores, weights, copy,
                        )  # fmt: skip
                for a in range(group):
                    sums[start + a], total[start + a] = own_sums[a], own_total[a]
            for a in range(group):
                weight = _ZERO
                for lane in range(LANES):
                    weight += total[start + a, lane]
                inverse = _ONE / weight
                place = (h * group + a) * dim
                for i in range(dim):
                    store(out, t, place + i, sums[start + a, i] * inverse)


@njit(inline="always", fastmath=FAST, error_model="numpy")
def _largest(logits: Any, r: Any, lanes: Any) -> Any:
    """The largest of logits[r] and the index of the first of its equals. lanes: float32 [16], scratch."""
    vocab = logits.shape[1]
    lanes[:] = -np.inf
    for block in range(vocab // 16):
        for lane in range(16):
            lanes[lane] = max(lanes[lane], load(logits[r, block * 16 + lane]))
    m = np.float32(-np.inf)
    for lane in range(16):
        m = max(m, lanes[lane])
    for i in range(vocab // 16 * 16, vocab):
        m = max(m, load(logits[r, i]))
    index = 0
    while index < vocab - 1 and load(logits[r, index]) != m:
        index += 1
    return m, index


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def largest(logits: Any, best: Any) -> None:
    """best[r] = index of the largest of logits[r], the first of equals. logits: [rows, vocab], float32 or bfloat16
    bits; best: int64 [rows] (out)."""
    for r in prange(logits.shape[0]):
        lanes = np.empty(16, np.float32)
        best[r] = _largest(logits, r, lanes)[1]


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def log_probabilities(logits: Any, wanted: Any, best: Any, log_probability: Any) -> None:
    """Per row: the index of the largest logit (the first of equals) and the log-probability of `wanted`.

    logits: [rows, vocab], float32 or bfloat16 bits; wanted: int64 [rows]; best: int64 [rows] (out);
    log_probability: float64 [rows] (out), natural logarithm.
    """
    rows, vocab = logits.shape
    for r in prange(rows):
        lanes = np.empty(16, np.float32)
        m, index = _largest(logits, r, lanes)
        best[r] = index
        lanes[:] = _ZERO
        total = np.float64(0)
        for block in range(vocab // 16):
            for lane in range(16):
                lanes[lane] += exp2((load(logits[r, block * 16 + lane]) - m) * LOG2E)
        for lane in range(16):
            total += np.float64(lanes[lane])
        for i in range(vocab // 16 * 16, vocab):
            total += np.float64(exp2((load(logits[r, i]) - m) * LOG2E))
        log_probability[r] = np.float64(load(logits[r, wanted[r]])) - np.float64(m) - np.log(total)
