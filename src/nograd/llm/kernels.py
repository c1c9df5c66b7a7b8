"""CPU kernels for what a decoder does between its matrix products: norm, rotation, attention, log-probability.

Every output is computed in one fixed order from its own inputs alone, in float32 inside, so the bits of a row
do not depend on its company. bfloat16 arrays come in as uint16 views. The plain forms are in `reference.py`;
tests compare the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange, types
from numba.extending import overload

from nograd.llm.tile import COLUMNS, ROWS
from nograd.llm.tile import multiply_add_tile as _multiply_add_tile

multiply_add_tile: Any = _multiply_add_tile

PAGE = COLUMNS
"""Tokens in one page of the key-value cache."""

ITEM_TOKENS = 16
"""Query tokens in one work item of `attend`."""

_FAST: Any = {"contract", "nsz", "arcp"}
_LOG2E = np.float32(1.4426950408889634)
_MASKED = np.float32(-1e30)
_ONE = np.float32(1)
_ZERO = np.float32(0)


def _load(value: Any) -> Any:
    """A stored float32 or bfloat16 (uint16 bits) as float32."""
    raise NotImplementedError


@overload(_load, inline="always", strict=False)
def _load_overload(value: Any) -> Any:
    if value == types.uint16:
        return lambda value: np.uint32(np.uint32(value) << 16).view(np.float32)
    return lambda value: value


def _store(array: Any, i: Any, j: Any, value: Any) -> Any:
    """array[i, j] = value, rounded to nearest even where the array holds bfloat16 bits."""
    raise NotImplementedError


@overload(_store, inline="always", strict=False)
def _store_overload(array: Any, i: Any, j: Any, value: Any) -> Any:  # noqa: ARG001
    if array.dtype == types.uint16:

        def store_bfloat16(array: Any, i: Any, j: Any, value: Any) -> Any:
            bits = np.float32(value).view(np.uint32)
            rounding = 0x7FFF + ((bits >> 16) & 1)
            array[i, j] = np.uint16((bits + rounding) >> 16)

        return store_bfloat16

    def store_float32(array: Any, i: Any, j: Any, value: Any) -> Any:
        array[i, j] = value

    return store_float32


@njit(inline="always", fastmath=_FAST, error_model="numpy")
def _exp2(x: Any) -> Any:
    """2^x for x <= 0 (clamped at -126), relative error about 1e-7; vectorises, unlike the library's exp."""
    x = max(x, np.float32(-126.0))
    whole = np.floor(x + np.float32(0.5))
    f = x - whole
    p = np.float32(1.5353362e-4)
    p = p * f + np.float32(1.3398874e-3)
    p = p * f + np.float32(9.6184373e-3)
    p = p * f + np.float32(5.5503324e-2)
    p = p * f + np.float32(2.4022648e-1)
    p = p * f + np.float32(6.9314720e-1)
    p = p * f + _ONE
    return p * np.int32((np.int32(whole) + 127) << 23).view(np.float32)


@njit(parallel=True, cache=True, fastmath=_FAST, error_model="numpy")
def rms_norm(x: Any, weight: Any, eps: Any, out: Any) -> None:
    """out[t] = x[t] / rms(x[t]) ∘ weight. x, out: [tokens, hidden], float32 or bfloat16 bits; weight float32."""
    tokens, hidden = x.shape
    for t in prange(tokens):
        lanes = np.zeros(16, np.float32)
        for block in range(hidden // 16):
            for lane in range(16):
                value = _load(x[t, block * 16 + lane])
                lanes[lane] += value * value
        total = _ZERO
        for lane in range(16):
            total += lanes[lane]
        for i in range(hidden // 16 * 16, hidden):
            value = _load(x[t, i])
            total += value * value
        scale = _ONE / np.sqrt(total / np.float32(hidden) + eps)
        for i in range(hidden):
            _store(out, t, i, _load(x[t, i]) * scale * weight[i])


@njit(inline="always", fastmath=_FAST, error_model="numpy")
def _head(
    qkv: Any, t: Any, offset: Any, norm: Any, eps: Any, cos: Any, sin: Any, position: Any, out: Any
) -> None:
    """out = one head of qkv[t], normed if `norm` has weights, rotated by its position (half-split pairs)."""
    dim = out.shape[0]
    for i in range(dim):
        out[i] = _load(qkv[t, offset + i])
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


@njit(parallel=True, cache=True, fastmath=_FAST, error_model="numpy")
def rotate_and_store(
    qkv: Any,
    positions: Any,
    cos: Any,
    sin: Any,
    q_norm: Any,
    k_norm: Any,
    eps: Any,
    write_start: Any,
    write_page: Any,
    write_slot: Any,
    queries: Any,
    keys: Any,
    values: Any,
) -> None:
    """Rotate queries and keys, and write keys and values to every place that will read them.

    qkv: [tokens, (heads + 2 · kv_heads) · dim]. Token t goes to (write_page[w], write_slot[w]) for w in
    write_start[t] .. write_start[t + 1]. queries: float32 [tokens, heads, dim]; keys: float32
    [pages, kv_heads, dim, PAGE]; values: float32 [pages, kv_heads, PAGE, dim].
    """
    tokens, heads, dim = queries.shape
    kv_heads = keys.shape[1]
    for t in prange(tokens):
        position = positions[t]
        head = np.empty(dim, np.float32)
        for h in range(heads):
            _head(qkv, t, h * dim, q_norm, eps, cos, sin, position, head)
            for i in range(dim):
                queries[t, h, i] = head[i]
        for h in range(kv_heads):
            _head(qkv, t, (heads + h) * dim, k_norm, eps, cos, sin, position, head)
            value_at = (heads + kv_heads + h) * dim
            for w in range(write_start[t], write_start[t + 1]):
                page, slot = write_page[w], write_slot[w]
                for i in range(dim):
                    keys[page, h, i, slot] = head[i]
                    values[page, h, slot, i] = _load(qkv[t, value_at + i])


@njit(inline="always", fastmath=_FAST, error_model="numpy")
def _largest(values: Any, folded: Any) -> Any:
    """The largest of a page's values, folded in halves (which vectorises, in one fixed order)."""
    for j in range(16):
        folded[j] = max(values[j], values[j + 16])
    for j in range(8):
        folded[j] = max(folded[j], folded[j + 8])
    for j in range(4):
        folded[j] = max(folded[j], folded[j + 4])
    return max(max(folded[0], folded[2]), max(folded[1], folded[3]))


@njit(inline="always", fastmath=_FAST, error_model="numpy")
def _sum(values: Any, folded: Any) -> Any:
    """The sum of a page's values, in the same order."""
    for j in range(16):
        folded[j] = values[j] + values[j + 16]
    for j in range(8):
        folded[j] += folded[j + 8]
    for j in range(4):
        folded[j] += folded[j + 4]
    return (folded[0] + folded[2]) + (folded[1] + folded[3])


@njit(inline="always", fastmath=_FAST, error_model="numpy")
def _softmax_page(weights: Any, visible: Any, a: Any, largest: Any, total: Any, out: Any, folded: Any) -> None:
    """Fold one page of scores (weights [PAGE]) of query a into its running maximum and sum; scores become weights."""
    if visible < PAGE:
        for j in range(max(visible, 0), PAGE):
            weights[j] = _MASKED
    m = max(largest[a], _largest(weights, folded))
    shrink = _exp2(largest[a] - m)
    largest[a] = m
    for j in range(PAGE):
        weights[j] = _exp2(weights[j] - m)
    if visible < PAGE:
        for j in range(max(visible, 0), PAGE):
            weights[j] = _ZERO
    total[a] = total[a] * shrink + _sum(weights, folded)
    if shrink != _ONE:
        for i in range(out.shape[1]):
            out[a, i] *= shrink


@njit(parallel=True, cache=True, fastmath=_FAST, error_model="numpy")
def attend(
    queries: Any,
    keys: Any,
    values: Any,
    table: Any,
    item_token: Any,
    item_count: Any,
    item_position: Any,
    item_row: Any,
    scale: Any,
    out: Any,
) -> None:
    """Causal attention of query tokens over paged keys and values, page by page with a running softmax.

    An item is `item_count` consecutive tokens from `item_token`, the first at `item_position`, whose keys lie
    in the pages table[item_row]. The heads that share a key-value head are handled together. dim is a multiple
    of 32. queries: float32 [tokens, heads, dim]; out: [tokens, heads · dim], float32 or bfloat16 bits.
    """
    items = item_token.shape[0]
    heads, dim = queries.shape[1], queries.shape[2]
    kv_heads = keys.shape[1]
    group = heads // kv_heads
    factor = scale * _LOG2E
    key_lines = keys.reshape(-1, PAGE)
    value_lines = values.reshape(-1, dim)
    for work in prange(kv_heads * items):
        h, item = work // items, work % items
        count = item_count[item] * group
        blocks = (count + ROWS - 1) // ROWS
        asked = np.zeros((blocks * ROWS, dim), np.float32)
        sums = np.zeros((blocks * ROWS, dim), np.float32)
        largest = np.full(blocks * ROWS, _MASKED, np.float32)
        total = np.zeros(blocks * ROWS, np.float32)
        scores = np.zeros((ROWS, PAGE), np.float32)
        folded = np.zeros(16, np.float32)
        for a in range(count):
            for i in range(dim):
                asked[a, i] = queries[item_token[item] + a // group, h * group + a % group, i] * factor
        pages = (item_position[item] + item_count[item] - 1) // PAGE + 1
        for p in range(pages):
            line = table[item_row[item], p] * kv_heads + h
            for block in range(blocks):
                first = block * ROWS
                newest = item_position[item] + (min(first + ROWS, count) - 1) // group
                depth = min(PAGE, newest - p * PAGE + 1)
                if depth <= 0:
                    continue
                for a in range(ROWS):
                    for j in range(PAGE):
                        scores[a, j] = _ZERO
                multiply_add_tile(asked, first, key_lines, line * dim, 0, scores, 0, dim)
                for a in range(ROWS):
                    visible = item_position[item] + (first + a) // group - p * PAGE + 1
                    _softmax_page(scores[a], visible, first + a, largest, total, sums, folded)
                for column in range(0, dim, COLUMNS):
                    multiply_add_tile(
                        scores, 0, value_lines, line * PAGE, column, sums[first:], column, depth
                    )
        for a in range(count):
            t, place = item_token[item] + a // group, (h * group + a % group) * dim
            inverse = _ONE / total[a]
            for i in range(dim):
                _store(out, t, place + i, sums[a, i] * inverse)


@njit(parallel=True, cache=True, fastmath=_FAST, error_model="numpy")
def log_probabilities(logits: Any, wanted: Any, best: Any, log_probability: Any) -> None:
    """Per row: the index of the largest logit (the first of equals) and the log-probability of `wanted`.

    logits: [rows, vocab], float32 or bfloat16 bits; wanted: int64 [rows]; best: int64 [rows] (out);
    log_probability: float64 [rows] (out), natural logarithm.
    """
    rows, vocab = logits.shape
    for r in prange(rows):
        lanes = np.full(16, -np.inf, np.float32)
        for block in range(vocab // 16):
            for lane in range(16):
                lanes[lane] = max(lanes[lane], _load(logits[r, block * 16 + lane]))
        m = np.float32(-np.inf)
        for lane in range(16):
            m = max(m, lanes[lane])
        for i in range(vocab // 16 * 16, vocab):
            m = max(m, _load(logits[r, i]))
        index = 0
        while index < vocab - 1 and _load(logits[r, index]) != m:
            index += 1
        best[r] = index
        lanes[:] = _ZERO
        total = np.float64(0)
        for block in range(vocab // 16):
            for lane in range(16):
                lanes[lane] += _exp2((_load(logits[r, block * 16 + lane]) - m) * _LOG2E)
        for lane in range(16):
            total += np.float64(lanes[lane])
        for i in range(vocab // 16 * 16, vocab):
            total += np.float64(_exp2((_load(logits[r, i]) - m) * _LOG2E))
        log_probability[r] = np.float64(_load(logits[r, wanted[r]])) - np.float64(m) - np.log(total)
