"""The CPU kernels against the plain operations, on random batches of the kind that the engine makes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from nograd.llm import kernels, reference
from nograd.llm.architecture import Architecture
from nograd.llm.batch import Batch, Run, lay_out
from nograd.llm.kernels import ITEM_TOKENS, PAGE
from nograd.llm.operations import CpuOperations, Operations, TorchOperations

TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


def architecture(dim: int, kv_heads: int, group: int, rope_dims: int, qk_norm: bool) -> Architecture:
    return Architecture(
        kind="llama",
        layers=1,
        hidden=8,
        heads=kv_heads * group,
        kv_heads=kv_heads,
        head_dim=dim,
        intermediate=8,
        vocab=8,
        max_positions=256,
        norm_eps=1e-5,
        norm_offset=0.0,
        activation="silu",
        embedding_scale=1.0,
        rope_dims=rope_dims,
        qk_norm=qk_norm,
        tied_embeddings=True,
    )


@dataclass
class Case:
    """A batch of rows that go on after stored prefixes; every slot that nobody wrote holds NaN."""

    architecture: Architecture
    generator: torch.Generator
    lengths: list[tuple[int, int]]
    dtype: torch.dtype

    def __post_init__(self) -> None:
        a = self.architecture
        pages = sum(-(-(start + count) // PAGE) for start, count in self.lengths) + 2
        self.keys = torch.full((pages, a.kv_heads, a.head_dim, PAGE), torch.nan)
        self.values = torch.full((pages, a.kv_heads, PAGE, a.head_dim), torch.nan)
        free = torch.randperm(pages, generator=self.generator).tolist()
        self.runs = []
        for start, count in self.lengths:
            own = [free.pop() for _ in range(-(-(start + count) // PAGE))]
            for first, page in zip(range(0, start, PAGE), own, strict=False):
                slots = min(PAGE, start - first)
                self.keys[page, :, :, :slots] = self.normal(a.kv_heads, a.head_dim, slots)
                self.values[page, :, :slots] = self.normal(a.kv_heads, slots, a.head_dim)
            self.runs.append(Run([0] * count, start, own, 0, 0, (0,)))
        total = sum(count for _, count in self.lengths)
        self.qkv = self.normal(total, (a.heads + 2 * a.kv_heads) * a.head_dim).to(self.dtype)
        empty = torch.zeros(0)
        self.q_norm = self.normal(a.head_dim) if a.qk_norm else empty
        self.k_norm = self.normal(a.head_dim) if a.qk_norm else empty
        angles = torch.outer(torch.arange(256.0), torch.rand(a.rope_dims // 2, generator=self.generator))
        self.cos, self.sin = angles.cos(), angles.sin()

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=self.generator)

    def attention(
        self, kind: type[CpuOperations | TorchOperations], batch: Batch
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Attention outputs, keys and values (as floats) under one of the two implementations."""
        operations: Operations = kind(self.architecture, self.cos, self.sin, self.dtype)
        keys, values = self.keys.clone(), self.values.clone()
        if operations.words:
            keys, values = as_words(keys).bfloat16(), as_words(values).bfloat16()
        found = operations.attention(
            operations.begin(batch), self.qkv, self.q_norm, self.k_norm, keys, values
        )
        if operations.words:
            keys, values = as_floats(keys), as_floats(values)
        return found, keys, values


def as_words(pages: torch.Tensor) -> torch.Tensor:
    """[..., n, m] -> [..., n / 2, m, 2]: lines i and i + n / 2 side by side, as `PagePool` documents."""
    half = pages.shape[-2] // 2
    return torch.stack((pages[..., :half, :], pages[..., half:, :]), dim=-1)


def as_floats(pages: torch.Tensor) -> torch.Tensor:
    """The inverse, in float32."""
    return torch.cat((pages[..., 0], pages[..., 1]), dim=-2).float()


def close(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> bool:
    return torch.allclose(found.float(), expected.float(), rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("group", [1, 3, 4, 7])
@pytest.mark.parametrize("dim", [32, 64, 96, 128])
def test_attention_of_every_head_layout(dim: int, group: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(dim + group)
    a = architecture(dim, 1 + group % 2, group, rope_dims=dim // (1 + group % 2), qk_norm=group == 3)
    lengths = [(0, 1), (31, 1), (32, 1), (30, 5), (0, 33), (60, 40), (7, 17), (64, 64)]
    check_attention(Case(a, generator, lengths, dtype))


@settings(deadline=None, max_examples=30)
@given(
    lengths=st.lists(st.tuples(st.integers(0, 130), st.integers(1, 70)), min_size=1, max_size=5),
    dim=st.sampled_from([32, 64]),
    kv_heads=st.integers(1, 3),
    group=st.integers(1, 5),
    rotated=st.sampled_from([0.25, 0.5, 1.0]),
    qk_norm=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 1000),
)
def test_attention_of_random_batches(
    lengths: list[tuple[int, int]],
    dim: int,
    kv_heads: int,
    group: int,
    rotated: float,
    qk_norm: bool,
    dtype: torch.dtype,
    seed: int,
) -> None:
    a = architecture(dim, kv_heads, group, int(dim * rotated), qk_norm)
    check_attention(Case(a, torch.Generator().manual_seed(seed), lengths, dtype))


def check_attention(case: Case) -> None:
    """Both implementations agree, nothing leaks out of unused slots, and only own slots are written."""
    tolerance = TOLERANCE[case.dtype]
    fast, keys, values = case.attention(CpuOperations, lay_out(case.runs, ITEM_TOKENS))
    plain, plain_keys, plain_values = case.attention(TorchOperations, lay_out(case.runs, 1 << 30))
    assert fast.dtype == plain.dtype == case.dtype
    assert fast.isfinite().all()
    assert plain.isfinite().all()
    assert close(fast, plain, tolerance)
    stored = 1e-5 if case.dtype == torch.float32 else 8e-3
    assert close(keys, plain_keys, stored)
    assert close(values, plain_values, stored)


def test_bfloat16_on_a_cpu_that_does_not_multiply_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values in float32, then; the same values, and nothing depends on company."""
    monkeypatch.setattr("nograd.llm.operations.multiplies_words", lambda: False)
    a = architecture(64, 2, 3, rope_dims=64, qk_norm=True)
    case = Case(a, torch.Generator().manual_seed(9), [(50, 9), (0, 40), (33, 1), (64, 1)], torch.bfloat16)
    check_attention(case)
    together, _, _ = case.attention(CpuOperations, lay_out(case.runs, ITEM_TOKENS))
    case.runs, case.qkv = case.runs[1:2], case.qkv[9:49].clone()
    alone, _, _ = case.attention(CpuOperations, lay_out(case.runs, ITEM_TOKENS))
    assert torch.equal(alone, together[9:49])


def test_attention_from_its_definition() -> None:
    """One row, whole: rotation, causal softmax and grouping as in the literature."""
    a = architecture(32, 2, 3, rope_dims=32, qk_norm=False)
    case = Case(a, torch.Generator().manual_seed(5), [(0, 45)], torch.float32)
    heads = case.qkv.view(45, 10, 32).transpose(0, 1)
    cos, sin = case.cos[:45], case.sin[:45]

    def rotated(x: torch.Tensor) -> torch.Tensor:
        left, right = x[..., :16], x[..., 16:]
        return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)

    q, k, v = rotated(heads[:6]), rotated(heads[6:8]), heads[8:]
    expected = functional.scaled_dot_product_attention(
        q, k.repeat_interleave(3, 0), v.repeat_interleave(3, 0), is_causal=True
    )
    found, _, _ = case.attention(CpuOperations, lay_out(case.runs, ITEM_TOKENS))
    assert close(found, expected.transpose(0, 1).reshape(45, -1), 1e-5)


def test_large_scores_do_not_overflow() -> None:
    a = architecture(32, 1, 2, rope_dims=32, qk_norm=False)
    case = Case(a, torch.Generator().manual_seed(6), [(40, 20)], torch.float32)
    case.qkv *= 300
    fast, _, _ = case.attention(CpuOperations, lay_out(case.runs, ITEM_TOKENS))
    plain, _, _ = case.attention(TorchOperations, lay_out(case.runs, 1 << 30))
    assert close(fast, plain, 1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_row_does_not_depend_on_the_rows_around_it(dtype: torch.dtype) -> None:
    a = architecture(64, 2, 3, rope_dims=64, qk_norm=False)
    case = Case(a, torch.Generator().manual_seed(7), [(50, 9), (0, 40), (33, 1)], dtype)
    together, _, _ = case.attention(CpuOperations, lay_out(case.runs, ITEM_TOKENS))
    case.runs, case.qkv = case.runs[1:2], case.qkv[9:49].clone()
    alone, _, _ = case.attention(CpuOperations, lay_out(case.runs, ITEM_TOKENS))
    assert torch.equal(alone, together[9:49])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_token_does_not_depend_on_the_piece_that_it_comes_in(dtype: torch.dtype) -> None:
    """A prompt computed at once, or token by token after a stored prefix: the same bits."""
    a = architecture(32, 1, 3, rope_dims=32, qk_norm=False)
    case = Case(a, torch.Generator().manual_seed(8), [(0, 50)], dtype)
    whole, keys, values = case.attention(CpuOperations, lay_out(case.runs, ITEM_TOKENS))
    case.keys, case.values = keys, values
    pages, qkv = case.runs[0].pages, case.qkv
    for position in (0, 7, 31, 32, 49):
        case.runs = [Run([0], position, pages[: position // PAGE + 1], 0, 0, (0,), store=False)]
        case.qkv = qkv[position : position + 1].clone()
        alone, _, _ = case.attention(CpuOperations, lay_out(case.runs, ITEM_TOKENS))
        assert torch.equal(alone[0], whole[position])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@settings(deadline=None, max_examples=15)
@given(
    shared=st.integers(1, 4),
    ends=st.lists(st.integers(0, 2 * PAGE - 1), min_size=2, max_size=9),
    group=st.sampled_from([1, 3, 5]),
    seed=st.integers(0, 99),
)
def test_rows_that_attend_together_are_what_they_are_alone(
    dtype: torch.dtype, shared: int, ends: list[int], group: int, seed: int
) -> None:
    """Decoding rows whose first pages are the same ones, together and each in a batch of its own."""
    a = architecture(64, 2, group, rope_dims=64, qk_norm=False)
    starts = [shared * PAGE + end for end in ends]
    case = Case(a, torch.Generator().manual_seed(seed), [(start, 1) for start in starts], dtype)
    common = case.runs[0].pages[:shared]
    runs = [Run((0,), run.start, [*common, *run.pages[shared:]], 0, 0, (0,)) for run in case.runs]
    assert lay_out(runs, ITEM_TOKENS).item_count.max() > 1
    together, _, _ = case.attention(CpuOperations, lay_out(runs, ITEM_TOKENS))
    plain, _, _ = case.attention(TorchOperations, lay_out(runs, 1 << 30))
    assert close(together, plain, TOLERANCE[dtype])
    qkv = case.qkv
    for number, run in enumerate(runs):
        case.qkv = qkv[number : number + 1].clone()
        alone, _, _ = case.attention(CpuOperations, lay_out([run], ITEM_TOKENS))
        assert torch.equal(alone[0], together[number])


@settings(deadline=None, max_examples=40)
@given(
    tokens=st.integers(1, 40), hidden=st.integers(1, 100), scale=st.integers(-6, 6), seed=st.integers(0, 999)
)
def test_rms_norm(tokens: int, hidden: int, scale: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(hidden, generator=generator)
    a = architecture(32, 1, 1, 32, False)
    operations = CpuOperations(a, torch.zeros(1, 1), torch.zeros(1, 1))
    for dtype in (torch.float32, torch.bfloat16):
        x = (torch.randn(tokens, hidden, generator=generator) * 10.0**scale).to(dtype)
        found = operations.rms_norm(x, weight)
        assert found.dtype == dtype
        assert close(found, reference.rms_norm(x, weight, a.norm_eps), TOLERANCE[dtype])
        assert torch.equal(found[-1], operations.rms_norm(x[-1:].clone(), weight)[0])


def log_probabilities(logits: torch.Tensor, wanted: list[int]) -> tuple[list[int], torch.Tensor]:
    operations = CpuOperations(architecture(32, 1, 1, 32, False), torch.zeros(1, 1), torch.zeros(1, 1))
    best, value = operations.log_probabilities(logits, np.array(wanted, dtype=np.int64))
    return best.tolist(), torch.from_numpy(value)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 20), vocab=st.integers(1, 200), spread=st.floats(0.01, 50), seed=st.integers(0, 999)
)
def test_log_probabilities(rows: int, vocab: int, spread: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    operations = CpuOperations(architecture(32, 1, 1, 32, False), torch.zeros(1, 1), torch.zeros(1, 1))
    wanted = torch.randint(vocab, (rows,), generator=generator)
    for dtype in (torch.float32, torch.bfloat16):
        logits = (torch.randn(rows, vocab, generator=generator) * spread).to(dtype)
        best, value = log_probabilities(logits, wanted.tolist())
        assert operations.best(logits).tolist() == reference.best(logits).tolist() == best
        expected_best, expected = reference.log_probabilities(logits, wanted)
        oracle = logits.double().log_softmax(1).gather(1, wanted[:, None])[:, 0]
        assert best == expected_best.tolist()
        assert torch.allclose(value, oracle, rtol=1e-6, atol=2e-6)
        assert torch.allclose(expected, oracle, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("vocab", [3, 16, 17, 50, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_first_of_equal_logits_wins(vocab: int, dtype: torch.dtype) -> None:
    logits = torch.zeros(3, vocab, dtype=dtype)
    logits[1, [1, vocab - 1]] = 4.0
    logits[2, vocab - 1] = 4.0
    best, value = log_probabilities(logits, [0, 1, 0])
    assert best == [0, 1, vocab - 1]
    assert best == reference.log_probabilities(logits, torch.zeros(3, dtype=torch.int64))[0].tolist()
    assert value[0].item() == pytest.approx(-np.log(vocab), abs=1e-6)


def test_impossible_tokens() -> None:
    logits = torch.full((2, 37), -torch.inf)
    logits[0, 5] = 1.0
    logits[1, [2, 36]] = torch.tensor([3.0, 2.0])
    best, value = log_probabilities(logits, [5, 4])
    plain_best, plain = reference.log_probabilities(logits, torch.tensor([5, 4]))
    assert best == plain_best.tolist() == [5, 2]
    assert value.tolist() == pytest.approx(plain.tolist())
    assert value.tolist() == [pytest.approx(0, abs=1e-6), -np.inf]


def test_log_probabilities_of_a_real_vocabulary_do_not_depend_on_company() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(9, 49_152, generator=generator) * 5
    wanted = list(range(9))
    best, value = log_probabilities(logits, wanted)
    assert torch.allclose(value, logits.double().log_softmax(1)[range(9), wanted], atol=1e-5)
    for row in (0, 8):
        alone_best, alone = log_probabilities(logits[row : row + 1].clone(), [row])
        assert alone_best == best[row : row + 1]
        assert torch.equal(alone, value[row : row + 1])


def test_the_size_that_the_arithmetic_order_hangs_on() -> None:
    """A change here changes every result's bits: runs made before could not be resumed."""
    assert kernels.PAGE == 32
