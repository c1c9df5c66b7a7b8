"""Packed products: the plain product's values, and rows whose bits do not depend on how many there are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from nograd.llm.linear import Linear, activate, can_pack

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [(96, 64), (61, 32), (4, 32), (576, 4), (32, 576), (960, 576), (576, 1536), (40, 16)]
"""[out, in]: tiny models, coefficients in and out, the embedded model's."""

Form = Callable[[Linear, torch.Tensor, torch.Tensor], torch.Tensor]
FORMS: dict[str, Form] = {
    "plain": lambda linear, x, _: linear(x),
    "silu": lambda linear, x, _: linear.activated(x, "silu"),
    "gelu": lambda linear, x, _: linear.activated(x, "gelu"),
    "gelu_tanh": lambda linear, x, _: linear.activated(x, "gelu_tanh"),
    "added_to": lambda linear, x, other: linear.added_to(x, other),
    "times": lambda linear, x, other: linear.times(x, other),
}


def expected(name: str, y: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """What a form means, from y = x Wᵀ + b in float32."""
    if name == "added_to":
        return other + y
    if name == "times":
        return other * y
    return y if name == "plain" else activate(y, name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(deadline=None, max_examples=20)
@given(
    shape=st.sampled_from(SHAPES[:4]),
    rows=st.sampled_from([1, 2, 15, 16, 17, 40, 130]),
    biased=st.booleans(),
    seed=st.integers(0, 999),
)
def test_packed_equals_plain(
    form: str, dtype: torch.dtype, shape: tuple[int, int], rows: int, biased: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator).to(dtype)

    weight, bias, x, other = normal(*shape), normal(shape[0]), normal(rows, shape[1]), normal(rows, shape[0])
    before = [t.clone() for t in (weight, bias, x, other)]
    linear = Linear(weight, bias if biased else None)
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
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_do_not_depend_on_the_number_of_rows(
    dtype: torch.dtype, shape: tuple[int, int], form: str
) -> None:
    weight = torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    if not can_pack(weight):
        pytest.skip(f"no packed {dtype} products here")
    linear = Linear(weight)
    x = torch.randn(530, shape[1], generator=torch.Generator().manual_seed(2)).to(dtype)
    other = torch.randn(530, shape[0], generator=torch.Generator().manual_seed(3)).to(dtype)
    whole = FORMS[form](linear, x, other)
    for first, stop in ((0, 1), (3, 5), (9, 16), (1, 17), (1, 18), (40, 95), (7, 263), (0, 513), (17, 530)):
        part = FORMS[form](linear, x[first:stop], other[first:stop])
        assert torch.equal(part, whole[first:stop]), (first, stop)


def test_half_precision_on_a_cpu_is_not_packed_but_works() -> None:
    weight, x, other = (torch.randn(24, 24).half() for _ in range(3))
    linear = Linear(weight)
    assert not linear.packed
    for form, apply in FORMS.items():
        y = x.float() @ weight.float().T
        assert torch.allclose(apply(linear, x, other).float(), expected(form, y, other.float()), atol=0.05)
