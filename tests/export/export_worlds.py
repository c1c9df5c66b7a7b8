"""Tiny models with random coefficients, ready to be exported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from nograd.export.tuned import Tuned
from nograd.llm.loading import load_weights
from nograd.llm.sources import Source
from nograd.llm.subspace import SubspaceSpec, build_subspace
from tiny_models import CPU, SPEC

STAGES = ("first", "second", "third")
PROMPTS = ([3, 9, 4, 17, 5, 22, 8, 11, 30, 2, 6], [1], list(range(40)))


def tuned_model(folder: Path, spec: SubspaceSpec = SPEC, seed: int = 0) -> Tuned:
    """Random coefficients on the model of a folder; those of the first stage are zero."""
    architecture, weights = load_weights(folder, torch.float32, CPU)
    subspace = build_subspace(architecture, weights, spec, "tiny", None)
    theta = np.random.default_rng(seed).normal(size=(spec.modules, subspace.size)).astype(np.float32)
    theta[0] = 0
    return Tuned(STAGES[: spec.modules], theta, Source("tiny", folder), architecture, subspace)
