"""The low-rank subspace that a stage's coefficients move in (paper §3, DESIGN §4).

Per target (the query, value and output projection of every block) it holds K = modules · dim rank-one
directions u sᵢ vᵀ; module m owns dim of them. The delta of module m on a target is c · Σᵢ θ[i] sᵢ (x·vᵢ) uᵢ.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from nograd.errors import ConfigError
from nograd.llm.architecture import Architecture, Layer, Weights
from nograd.llm.subspace_choices import Binding, Kind

TARGETS = ("q", "v", "o")


@dataclass(frozen=True)
class SubspaceSpec:
    """modules: M; dim: d coefficients per module and layer; strength: c; seed keys random and shuffled."""

    modules: int
    dim: int = 32
    kind: Kind = "svd"
    binding: Binding = "round_robin"
    per_layer: bool = False
    strength: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Directions:
    """Rank-one directions of one target: u [out, K], s [K] (without c), v [in, K]; float32 on the CPU."""

    u: torch.Tensor
    s: torch.Tensor
    v: torch.Tensor

    def of(self, columns: torch.Tensor) -> Directions:
        """The directions with these indices."""
        return Directions(self.u[:, columns], self.s[columns], self.v[:, columns])


@dataclass(frozen=True)
class Subspace:
    """directions[layer][target]; columns[m]: int64 [dim], the directions that module m owns."""

    spec: SubspaceSpec
    layers: int
    directions: list[dict[str, Directions]]
    columns: list[torch.Tensor]

    @property
    def size(self) -> int:
        """Coefficients per module as the search sees them: dim, or layers · dim where per_layer."""
        return self.spec.dim * (self.layers if self.spec.per_layer else 1)

    def digest(self) -> str:
        """sha256 (hex) of all directions, by layer and target."""
        digest = hashlib.sha256()
        for layer in self.directions:
            for target in TARGETS:
                for part in ("u", "s", "v"):
                    digest.update(getattr(layer[target], part).contiguous().numpy())
        return digest.hexdigest()

    def theta_of_layer(self, theta: torch.Tensor, layer: int) -> torch.Tensor:
        """theta [..., size] -> the coefficients that act in one layer [..., dim]."""
        if not self.spec.per_layer:
            return theta
        return theta[..., layer * self.spec.dim : (layer + 1) * self.spec.dim]

    def delta(self, theta: NDArray[np.float32], module: int, layer: int, target: str) -> torch.Tensor:
        """ΔW = c · U diag(θ s) Vᵀ of one module on one target, float32 [out, in]. theta: [size]."""
        own = self.directions[layer][target].of(self.columns[module])
        active = self.theta_of_layer(torch.from_numpy(np.array(theta, dtype=np.float32)), layer)
        return (own.u * (self.spec.strength * own.s * active)) @ own.v.T


def build_subspace(
    architecture: Architecture, weights: Weights, spec: SubspaceSpec, fingerprint: str, cache: Path | None
) -> Subspace:
    """The subspace of a model. `cache` is a folder for decompositions, keyed by the weights' fingerprint and
    the dtype that they were loaded in (rounding moves the directions a little).

    Raises ConfigError where a target's rank is too small for modules · dim."""
    _check_rank(architecture, spec)
    directions = (
        [_directions(layer, index, spec) for index, layer in enumerate(weights.layers)]
        if (spec.kind == "random")
        else _decomposed(weights, spec, fingerprint, cache)
    )
    return Subspace(spec, architecture.layers, directions, _columns(spec))


def _check_rank(architecture: Architecture, spec: SubspaceSpec) -> None:
    rank = min(architecture.hidden, architecture.kv_heads * architecture.head_dim)
    if spec.modules * spec.dim > rank:
        raise ConfigError(
            f"subspace.dim = {spec.dim} for {spec.modules} modules needs rank {spec.modules * spec.dim}, but the "
            f"value projection has rank {rank}; the largest dim that fits is {rank // spec.modules}"
        )


def _columns(spec: SubspaceSpec) -> list[torch.Tensor]:
    order = np.arange(spec.modules)
    if spec.binding == "shuffled":
        order = _generator(spec.seed, "binding").permutation(spec.modules)
    own = torch.arange(spec.dim) * spec.modules
    return [own + int(group) for group in order]


def _generator(seed: int, *key: object) -> np.random.Generator:
    digest = hashlib.sha256(repr((seed, "subspace", *key)).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


def _directions(layer: Layer, index: int, spec: SubspaceSpec) -> dict[str, Directions]:
    """Random unit directions with s = 1."""
    count = spec.modules * spec.dim
    found = {}
    for target in TARGETS:
        out, into = getattr(layer, target).shape
        generator = _generator(spec.seed, "random", index, target)
        u, v = (
            torch.from_numpy(generator.standard_normal((n, count), dtype=np.float32)) for n in (out, into)
        )
        found[target] = Directions(u / u.norm(dim=0), torch.ones(count), v / v.norm(dim=0))
    return found


def _decomposed(
    weights: Weights, spec: SubspaceSpec, fingerprint: str, cache: Path | None
) -> list[dict[str, Directions]]:
    count = spec.modules * spec.dim
    stored = _load_or_compute(weights, count, fingerprint, cache)
    found = []
    for index, layer in enumerate(weights.layers):
        top = {t: Directions(*(stored[f"{index}.{t}.{part}"] for part in "usv")) for t in TARGETS}
        if spec.kind == "matched":
            random = _directions(layer, index, spec)
            top = {t: Directions(random[t].u, top[t].s, random[t].v) for t in TARGETS}
        found.append(top)
    return found


def _load_or_compute(
    weights: Weights, count: int, fingerprint: str, cache: Path | None
) -> dict[str, torch.Tensor]:
    dtype = str(weights.embedding.dtype).removeprefix("torch.")
    name = f"svd-{fingerprint[:16]}-{dtype}-{count}-one-thread.safetensors"
    path = cache / name if cache is not None else None
    if path is not None and path.exists():
        with suppress(SafetensorError):  # damaged: computed anew
            return load_file(path)
    computed: dict[str, torch.Tensor] = {}
    for index, layer in enumerate(weights.layers):
        for target in TARGETS:
            for part, tensor in zip("usv", _top_triples(getattr(layer, target), count), strict=True):
                computed[f"{index}.{target}.{part}"] = tensor
    if path is not None:
        _save(computed, path)
    return computed


def _top_triples(weight: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """u [out, count], s [count], v [in, count] in float32; the sign makes each u's largest entry positive.

    With one thread, whatever else is set: a decomposition's rounding depends on how many there are."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        u, s, vh = torch.linalg.svd(weight.float(), full_matrices=False)
    finally:
        torch.set_num_threads(threads)
    u, s, v = u[:, :count], s[:count], vh[:count].T
    largest = u.gather(0, u.abs().argmax(dim=0, keepdim=True))
    sign = torch.where(largest < 0, -1.0, 1.0)
    return (u * sign).cpu().contiguous(), s.cpu().contiguous(), (v * sign).cpu().contiguous()


def _save(tensors: dict[str, torch.Tensor], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    os.close(handle)
    try:
        save_file(tensors, temporary)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
