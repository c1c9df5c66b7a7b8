"""Rotary position frequencies of a model configuration."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from nograd.errors import ModelError

SUPPORTED = ("default", "linear", "dynamic", "yarn", "longrope", "llama3")


@dataclass(frozen=True)
class Rope:
    """Rotary embedding of one head.

    inverse_frequencies: float32 [dims / 2]. scale multiplies cos and sin. max_positions: up to here the
    frequencies hold; beyond, `dynamic` and `longrope` would change them for the whole sequence."""

    inverse_frequencies: torch.Tensor
    dims: int
    scale: float
    max_positions: int


def read_rope(config: Mapping[str, Any], head_dim: int, max_positions: int) -> Rope:
    """Frequencies for a config.json, old style (rope_theta, rope_scaling) or new (rope_parameters).

    Raises ModelError for a rope type that is not supported."""
    parameters = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    kind = "longrope" if kind == "su" else kind
    if kind not in SUPPORTED:
        raise ModelError(
            f"rotary positions of type {kind!r} are not supported; choose a model with one of: "
            f"{', '.join(SUPPORTED)}"
        )
    if kind == "default":
        return _default_rope(config, parameters, head_dim, max_positions)
    frequencies, scale, original = _scaled_rope(config, kind)
    limit = min(max_positions, original) if kind == "longrope" else max_positions
    return Rope(frequencies, 2 * len(frequencies), scale, limit)


def _default_rope(
    config: Mapping[str, Any], parameters: Mapping[str, Any], head_dim: int, max_positions: int
) -> Rope:
    theta = parameters.get("rope_theta") or config.get("rope_theta") or 10_000.0
    partial = parameters.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0
    dims = int(head_dim * partial)
    exponents = torch.arange(0, dims, 2, dtype=torch.int64).float() / dims
    return Rope(1.0 / theta**exponents, dims, 1.0, max_positions)


def _scaled_rope(config: Mapping[str, Any], kind: str) -> tuple[torch.Tensor, float, int]:
    """Frequencies, scale and original context length as transformers computes them (imported only here:
    it costs a second)."""
    from transformers import CONFIG_MAPPING
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    try:
        parsed = CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(dict(config)))
        frequencies, scale = ROPE_INIT_FUNCTIONS[kind](parsed, torch.device("cpu"))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"config.json describes rotary positions of type {kind!r} that transformers cannot compute "
            f"({type(error).__name__}: {error}); repair the file"
        ) from error
    original = parsed.rope_parameters.get("original_max_position_embeddings", parsed.max_position_embeddings)
    return frequencies.float(), float(scale), int(original)
