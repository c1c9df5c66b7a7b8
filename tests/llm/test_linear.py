"""Products with frozen weights: the plain product's values, and rows whose bits do not depend on how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from nograd.llm.linear import Linear, activate, can_pack
from nograd.llm.panels import GatedLinear, GatedPanels, Panels
from nograd.llm.tile import multiplies_words

SHAPES = [(96, 64), (61, 32), (4, 32), (576, 4), (32, 576), (960, 576), (576, 1536), (40, 16)]
"""[out, in]: tiny models, coefficients in and out, the embedded model's."""

Product = Linear | Panels
Form = Callable[[Product, torch.Tensor, torch.Tensor], torch.Tensor]
KINDS = [(Linear, torch.float32), (Linear, torch.bfloat16), (Panels, torch.bfloat16)]
FORMS: dict[str, Form] = {
    "plain": lambda linear, x, _: linear(x),
    "added_to": lambda linear, x, other: linear.added_to(x, other.clone()),
    "times": lambda linear, x, other: linear.rows_times(x, other, 0, len(x))[: len(x)],
}


def fits(kind: type[Product], weight: torch.Tensor) -> bool:
    """Whether this machine has the kind for this weight."""
    if kind is Panels:
        return multiplies_words() and weight.shape[0] % 32 == 0 == weight.shape[1] % 2
    return can_pack(weight)


def expected(name: str, y: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """What a form means, from y = x Wᵀ + b in float32."""
    if name == "added_to":
        return other + y
    if name == "times":
        return other * y
    return y


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
@settings(deadline=None, max_examples=20)
@given(
    shape=st.sampled_from(SHAPES[:4]),
    rows=st.sampled_from([1, 2, 15, 16, 17, 40, 130]),
    biased=st.booleans(),
    seed=st.integers(0, 999),
)
def test_packed_equals_plain(
    form: str, kind: type[Product], dtype: torch.dtype, shape: tuple[int, int], rows: int, biased: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator).to(dtype)

    weight, bias, x, other = normal(*shape), normal(shape[0]), normal(rows, shape[1]), normal(rows, shape[0])
    if kind is Panels:
        assume(fits(kind, weight) and rows >= 8)
    before = [t.clone() for t in (weight, bias, x, other)]
    linear = kind(weight, bias if biased else None)
    found = FORMS[form](linear, x, other)
    y = functional.linear(x.float(), weight.float(), bias.float() if biased else None)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    size = y.abs().max() * (other.float().abs().max() if form == "times" else 1)
    assert found.dtype == dtype
    assert (found.float() - expected(form, y, other.float())).abs().max() <= tolerance * size + tolerance
    for kept, t in zip(before, (weight, bias, x, other), strict=True):
        assert torch.equal(kept, t), "nothing that was passed is written to"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_bits_do_not_depend_on_the_number_of_rows(
    kind: type[Product], dtype: torch.dtype, shape: tuple[int, int], form: str
) -> None:
    weight = torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    if not fits(kind, weight):
        pytest.skip(f"no {dtype} products of this kind and shape here")
    linear = kind(weight)
    x = torch.randn(530, shape[1], generator=torch.Generator().manual_seed(2)).to(dtype)
    other = torch.randn(530, shape[0], generator=torch.Generator().manual_seed(3)).to(dtype)
    whole = FORMS[form](linear, x, other)
    for first, stop in ((0, 1), (3, 5), (9, 16), (1, 17), (1, 18), (40, 95), (7, 263), (0, 513), (17, 530)):
        if kind is Panels and stop - first < 8:
            continue
        part = FORMS[form](linear, x[first:stop], other[first:stop])
        assert torch.equal(part, whole[first:stop]), (first, stop)


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
@settings(deadline=None, max_examples=30)
@given(first=st.integers(0, 20), count=st.integers(1, 30), rest=st.integers(0, 9), seed=st.integers(0, 99))
def test_some_of_the_rows(
    kind: type[Product], dtype: torch.dtype, first: int, count: int, rest: int, seed: int
) -> None:
    """What the deltas use: a range of rows times theta, and added to the same rows of a larger result."""
    generator = torch.Generator().manual_seed(seed)
    rows = max(first + count + rest, 8)
    stop = first + count

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator).to(dtype)

    into, out = normal(32, 64), normal(96, 32)
    assume(fits(kind, into))
    x, theta, y = normal(rows, 64), normal(rows, 32), normal(rows, 96)
    kept = theta.clone()
    inner, outer = kind(into), kind(out)
    found = outer.add_rows(inner.rows_times(x, theta, first, stop), y.clone(), first, stop)
    wide = (x.float() @ into.float().T * theta.float()).to(dtype).float()
    expected_rows = y.float()
    expected_rows[first:stop] += (wide @ out.float().T)[first:stop]
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    assert torch.allclose(found.float(), expected_rows, rtol=tolerance, atol=tolerance * float(wide.abs().max()) * 6)
    assert torch.equal(found[:first], y[:first])
    assert torch.equal(found[stop:], y[stop:])
    assert torch.equal(theta, kept)


GATES = [
    (lambda gate, up: GatedLinear(gate, up, "silu"), torch.float32, "silu"),
    (lambda gate, up: GatedLinear(gate, up, "gelu"), torch.float32, "gelu"),
    (lambda gate, up: GatedLinear(gate, up, "gelu_tanh"), torch.bfloat16, "gelu_tanh"),
    (lambda gate, up: GatedLinear(gate, up, "silu"), torch.bfloat16, "silu"),
    (GatedPanels, torch.bfloat16, "silu"),
]


@pytest.mark.parametrize(("kind", "dtype", "activation"), GATES)
@pytest.mark.parametrize("shape", [(96, 64), (1536, 576)], ids=str)
def test_gates(kind: Any, dtype: torch.dtype, activation: str, shape: tuple[int, int]) -> None:
    """The plain form's values, and bits that do not depend on the number of rows."""
    generator = torch.Generator().manual_seed(4)
    gate, up = (torch.randn(*shape, generator=generator).to(dtype) * 0.2 for _ in range(2))
    if kind is GatedPanels and not fits(Panels, gate):
        pytest.skip("no bfloat16 words here")
    x = torch.randn(530, shape[1], generator=generator).to(dtype)
    x[3] *= 50
    gated = kind(gate, up)
    whole = gated(x)
    y = activate(x.float() @ gate.float().T, activation) * (x.float() @ up.float().T)
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    assert whole.dtype == dtype
    scale = y.abs().amax(dim=1, keepdim=True)
    assert ((whole.float() - y).abs() <= tolerance * (y.abs() + 0.1 * scale)).all()
    for first, stop in ((0, 8), (9, 18), (1, 17), (40, 95), (7, 263), (0, 513), (17, 530)):
        assert torch.equal(gated(x[first:stop]), whole[first:stop]), (first, stop)


def test_half_precision_on_a_cpu_is_not_packed_but_works() -> None:
    weight, x, other = (torch.randn(24, 24).half() for _ in range(3))
    linear = Linear(weight)
    assert not linear.packed
    for form, apply in FORMS.items():
        y = x.float() @ weight.float().T
        assert torch.allclose(apply(linear, x, other).float(), expected(form, y, other.float()), atol=0.05)
