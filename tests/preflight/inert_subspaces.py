"""Subspaces that are inert on purpose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from nograd.agent.scheduler import Scheduler
from nograd.llm.delta import Perturbation
from nograd.llm.engine import Engine
from nograd.llm.loading import load_chat, load_weights
from nograd.llm.subspace import Subspace, SubspaceSpec, build_subspace
from nograd.llm.transformer import Transformer
from tiny_models import CPU


def last_layer_scheduler(folder: Path, stages: tuple[str, ...], strength: float) -> Scheduler:
    """Unit-norm random directions on the last layer only (paper §4, T1)."""
    return _scheduler(folder, stages, _last_layer(_subspace(folder, SubspaceSpec(len(stages), 4, "random"), strength)))


def mute_scheduler(folder: Path, stages: tuple[str, ...], mute: int) -> Scheduler:
    """The SVD's directions, those of one module with singular value 0."""
    subspace = _subspace(folder, SubspaceSpec(len(stages), 4), 4.0)
    for layer in subspace.directions:
        for target, found in layer.items():
            s = found.s.clone()
            s[subspace.columns[mute]] = 0
            layer[target] = replace(found, s=s)
    return _scheduler(folder, stages, subspace)


def _subspace(folder: Path, spec: SubspaceSpec, strength: float) -> Subspace:
    architecture, weights = load_weights(folder, torch.float32, CPU)
    return build_subspace(architecture, weights, replace(spec, strength=strength), "tiny", None)


def _last_layer(subspace: Subspace) -> Subspace:
    for layer in subspace.directions[:-1]:
        layer.update({target: replace(found, s=torch.zeros_like(found.s)) for target, found in layer.items()})
    return subspace


def _scheduler(folder: Path, stages: tuple[str, ...], subspace: Subspace) -> Scheduler:
    architecture, weights = load_weights(folder, torch.float32, CPU)
    chat = load_chat(folder, "tiny")
    perturbation = Perturbation(architecture, subspace, CPU, torch.float32)
    return Scheduler(Engine(Transformer(architecture, weights), perturbation, chat.eos_ids, 20_000), chat, stages)
