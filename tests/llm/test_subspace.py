"""The subspace: which directions, who owns them, and that they are the same every time."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nograd.errors import ConfigError
from nograd.llm import subspace as module_under_test
from nograd.llm.subspace import TARGETS, Directions, Subspace, SubspaceSpec, build_subspace
from nograd.llm.subspace_choices import BINDINGS, KINDS
from tiny_models import Tiny, tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return tiny(tmp_path_factory.mktemp("model"), {})


def build(model: Tiny, cache: Path | None = None, fingerprint: str = "f" * 64, **settings: Any) -> Subspace:
    spec = SubspaceSpec(**{"modules": 3, "dim": 5, **settings})
    return build_subspace(model.architecture, model.weights, spec, fingerprint, cache)


def parts(subspace: Subspace) -> list[torch.Tensor]:
    return [t for layer in subspace.directions for d in layer.values() for t in (d.u, d.s, d.v)]


def same(one: Subspace, other: Subspace) -> bool:
    pairs = zip(parts(one), parts(other), strict=True)
    columns = zip(one.columns, other.columns, strict=True)
    return all(torch.equal(a, b) for a, b in itertools.chain(pairs, columns))


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_unit_directions(kind: str, model: Tiny) -> None:
    subspace = build(model, kind=kind)
    assert subspace.layers == len(subspace.directions) == 2
    for layer, directions in enumerate(subspace.directions):
        assert tuple(directions) == TARGETS
        for target, d in directions.items():
            out, into = getattr(model.weights.layers[layer], target).shape
            assert (d.u.shape, d.s.shape, d.v.shape) == ((out, 15), (15,), (into, 15))
            for side in (d.u, d.v):
                assert torch.allclose(side.norm(dim=0), torch.ones(15), atol=1e-5)
    assert all(t.dtype == torch.float32 for t in parts(subspace))


def test_svd_takes_the_top_triples_in_order(model: Tiny) -> None:
    for layer, directions in enumerate(build(model).directions):
        for target, d in directions.items():
            weight = getattr(model.weights.layers[layer], target).double().numpy()
            assert d.s.numpy() == pytest.approx(np.linalg.svd(weight, compute_uv=False)[:15], rel=1e-5)
            assert np.allclose(weight @ d.v.double().numpy(), (d.u * d.s).numpy(), atol=1e-4)


def test_sign_convention(model: Tiny) -> None:
    """The largest entry of every u is positive: the decomposition leaves the sign of (u, v) open."""
    for directions in build(model).directions:
        for d in directions.values():
            largest = d.u.gather(0, d.u.abs().argmax(dim=0, keepdim=True))
            assert (largest > 0).all()


def test_random_is_keyed_by_seed_layer_and_target_and_nothing_else(model: Tiny) -> None:
    one = build(model, kind="random")
    torch.manual_seed(99)
    np.random.seed(99)
    assert same(one, build(model, kind="random"))
    assert not same(one, build(model, kind="random", seed=1))
    assert all((d.s == 1).all() for layer in one.directions for d in layer.values())
    drawn = [d.v[:48, 0].tolist() for layer in one.directions for d in layer.values()]
    drawn += [d.u[:48, 0].tolist() for layer in one.directions for d in layer.values()]
    assert len({tuple(v) for v in drawn}) == 12


def test_matched_has_the_svd_values_on_the_random_directions(model: Tiny) -> None:
    svd, random, matched = (build(model, kind=kind) for kind in ("svd", "random", "matched"))
    for s, r, m in zip(svd.directions, random.directions, matched.directions, strict=True):
        for target in TARGETS:
            assert torch.equal(m[target].u, r[target].u)
            assert torch.equal(m[target].v, r[target].v)
            assert torch.equal(m[target].s, s[target].s)


def test_round_robin_binding(model: Tiny) -> None:
    assert [c.tolist() for c in build(model).columns] == [
        [0, 3, 6, 9, 12],
        [1, 4, 7, 10, 13],
        [2, 5, 8, 11, 14],
    ]


def test_shuffled_permutes_the_modules_by_seed(model: Tiny) -> None:
    groups = {tuple(c.tolist()) for c in build(model).columns}
    orders = set()
    for seed in range(30):
        columns = [tuple(c.tolist()) for c in build(model, binding="shuffled", seed=seed).columns]
        assert set(columns) == groups, "the same groups, to other modules"
        orders.add(tuple(columns))
    assert len(orders) == 6, "every permutation comes up"
    assert same(build(model, binding="shuffled", seed=3), build(model, binding="shuffled", seed=3))


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_delta_is_the_sum_of_its_rank_one_terms(kind: str, binding: str, model: Tiny) -> None:
    subspace = build(model, kind=kind, binding=binding, strength=0.25, seed=2)
    theta = np.random.default_rng(0).normal(size=5).astype(np.float32)
    for module in range(3):
        d: Directions = subspace.directions[1]["o"]
        expected = sum(
            0.25 * float(theta[i]) * d.s[k] * torch.outer(d.u[:, k], d.v[:, k])
            for i, k in enumerate(subspace.columns[module].tolist())
        )
        assert torch.allclose(subspace.delta(theta, module, 1, "o"), torch.as_tensor(expected), atol=1e-5)


def test_size_as_the_search_sees_it(model: Tiny) -> None:
    assert build(model).size == 5
    per_layer = build(model, per_layer=True)
    assert per_layer.size == 10
    theta = torch.arange(20.0).reshape(2, 10)
    assert per_layer.theta_of_layer(theta, 1).tolist() == [[5, 6, 7, 8, 9], [15, 16, 17, 18, 19]]
    assert build(model).theta_of_layer(theta, 1) is theta


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("modules", "largest"), [(1, 48), (3, 16), (7, 6), (49, 0)])
def test_too_small_a_rank_states_the_largest_dim(kind: str, modules: int, largest: int, model: Tiny) -> None:
    """The value projection is [64, 48]: rank 48."""
    with pytest.raises(ConfigError, match=rf"subspace.dim = {largest + 1} .* fits is {largest}$"):
        build(model, modules=modules, dim=largest + 1, kind=kind)
    if largest:
        assert build(model, modules=modules, dim=largest, kind=kind).size == largest


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    weight = torch.randn(300, 280, generator=torch.Generator().manual_seed(1))
    threads = torch.get_num_threads()
    found = []
    for number in (1, 2, 4):
        torch.set_num_threads(number)
        found.append(module_under_test._top_triples(weight, 50))
        assert torch.get_num_threads() == number, "the setting is put back"
    torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def test_the_digest_changes_with_any_direction(model: Tiny) -> None:
    one = build(model)
    assert one.digest() == build(model).digest()
    assert one.digest() != build(model, kind="matched").digest()
    for part in ("u", "s", "v"):
        other = build(model)
        getattr(other.directions[1]["o"], part).view(-1)[3] += 1e-6
        assert other.digest() != one.digest()


def test_decompositions_are_cached(model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = build(model)
    assert same(build(model, tmp_path / "deep" / "cache"), fresh)
    calls: list[int] = []
    decompose = module_under_test._top_triples

    def counted(weight: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        calls.append(count)
        return decompose(weight, count)

    monkeypatch.setattr(module_under_test, "_top_triples", counted)
    cache = tmp_path / "deep" / "cache"
    assert same(build(model, cache), fresh)
    assert same(build(model, cache, kind="matched"), build(model, cache, kind="matched"))
    assert calls == [], "read from the cache, for every kind"
    build(model, cache, dim=4)
    assert len(calls) == 6, "other sizes are decomposed anew"
    build(model, cache, fingerprint="e" * 64)
    assert len(calls) == 12, "and so are other weights"
    assert not list(cache.glob("*.tmp"))


def test_the_cache_does_not_mix_dtypes(model: Tiny, tmp_path: Path) -> None:
    """The fingerprint is of the stored weights: loaded in bfloat16 they have other directions."""
    (tmp_path / "model").mkdir()
    rounded = tiny(tmp_path / "model", {}, torch.bfloat16)
    cache = tmp_path / "cache"
    build(model, cache)
    assert same(build(rounded, cache), build(rounded))
    assert not same(build(rounded), build(model))


def test_a_failed_write_leaves_nothing(model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module_under_test, "save_file", full)
    with pytest.raises(OSError, match="disk full"):
        build(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_damaged_decomposition_is_computed_anew(model: Tiny, tmp_path: Path) -> None:
    fresh = build(model, tmp_path)
    (stored,) = tmp_path.glob("svd-*")
    stored.write_bytes(stored.read_bytes()[:100])
    assert all(torch.equal(one, other) for one, other in zip(parts(fresh), parts(build(model, tmp_path)), strict=True))
