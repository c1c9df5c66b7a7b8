"""From a Hugging Face config.json and its tensors to the canonical Architecture and Weights, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nograd.errors import ModelError
from nograd.llm.architecture import Architecture, Layer, Weights
from nograd.llm.rope import read_rope

ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}


@dataclass(frozen=True)
class _Kind:
    """How one model_type differs from Llama; defaults are those that a config.json may leave out."""

    always_bias: bool = False
    fused: bool = False
    qk_norm: bool = False
    gemma: bool = False
    head_dim: int | None = None
    kv_heads: int | None = None
    tied: bool = False
    max_positions: int = 2048
    norm_eps: float = 1e-6
    sliding_window: int | None = None


KINDS = {
    "llama": _Kind(),
    "mistral": _Kind(kv_heads=8, max_positions=131_072, sliding_window=4096),
    "qwen2": _Kind(always_bias=True, max_positions=32_768, sliding_window=4096),
    "qwen3": _Kind(qk_norm=True, head_dim=128, max_positions=32_768, sliding_window=4096),
    "gemma": _Kind(gemma=True, head_dim=256, kv_heads=16, tied=True, max_positions=8192),
    "phi3": _Kind(fused=True, max_positions=4096, norm_eps=1e-5),
}


Shapes = Mapping[str, Sequence[int]]
"""Tensor names of a checkpoint and their shapes."""


def check_supported(config: Mapping[str, Any], found: Shapes | None = None) -> None:
    """Raise ModelError if a config.json describes a layout the engine does not run.

    found: the checkpoint's tensors, if they are at hand, for the message."""
    model_type = config.get("model_type")
    if model_type not in KINDS:
        names = _projections(found or {})
        detail = f" with the projections {', '.join(names)}" if names else ""
        raise ModelError(
            f"the model has model_type {model_type!r}{detail}, a layout that is not supported; "
            f"choose a model of type {', '.join(KINDS)}"
        )
    refused = {
        "quantization_config": "quantised weights",
        "use_bidirectional_attention": "attention that is not causal",
        "mlp_bias": "biases in the MLP",
    }
    for key, what in refused.items():
        if config.get(key):
            raise ModelError(
                f"the model has {what} ({key} in its config.json), which is not supported; "
                "choose a plain half- or single-precision version of it"
            )


def read_architecture(config: Mapping[str, Any], dtype: torch.dtype = torch.float32) -> Architecture:
    """The architecture a config.json describes; dtype is what the weights will have (Gemma's embedding
    scale is rounded to it). Raises ModelError if it is not supported."""
    check_supported(config)
    kind = KINDS[config["model_type"]]
    hidden, heads = _required(config, "hidden_size"), _required(config, "num_attention_heads")
    head_dim = config.get("head_dim") or kind.head_dim or hidden // heads
    kv_heads = config.get("num_key_value_heads") or kind.kv_heads or heads
    if heads % kv_heads:
        raise ModelError(
            f"config.json has num_attention_heads = {heads}, no multiple of num_key_value_heads = "
            f"{kv_heads}; repair the file"
        )
    rope = read_rope(config, head_dim, _position_limit(config, kind))
    return Architecture(
        kind=config["model_type"],
        layers=_required(config, "num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=_required(config, "intermediate_size"),
        vocab=_required(config, "vocab_size"),
        max_positions=rope.max_positions,
        norm_eps=float(config.get("rms_norm_eps") or kind.norm_eps),
        norm_offset=1.0 if kind.gemma else 0.0,
        activation=_activation(config, kind),
        embedding_scale=torch.tensor(hidden**0.5, dtype=dtype).item() if kind.gemma else 1.0,
        rope_dims=rope.dims,
        qk_norm=kind.qk_norm,
        tied_embeddings=_tied(config, kind),
    )


def check_tensors(config: Mapping[str, Any], architecture: Architecture, found: Shapes) -> None:
    """Raise ModelError if a checkpoint's tensors are not those its config.json asks for."""
    ignored = {name for name in found if name.endswith("rotary_emb.inv_freq")}
    ignored |= {"lm_head.weight"} if architecture.tied_embeddings else set()
    shapes = {name: tuple(shape) for name, shape in found.items() if name not in ignored}
    _compare(expected_shapes(config, architecture), shapes)


def map_weights(
    config: Mapping[str, Any], architecture: Architecture, tensors: Mapping[str, torch.Tensor]
) -> Weights:
    """The tensors of a checkpoint (checked before) in canonical form; parts of fused ones become views."""
    embedding = tensors["model.embed_tokens.weight"]
    rope = read_rope(config, architecture.head_dim, architecture.max_positions)
    return Weights(
        embedding=embedding,
        layers=[_layer(architecture, tensors, f"model.layers.{i}.") for i in range(architecture.layers)],
        final_norm=tensors["model.norm.weight"],
        head=embedding if architecture.tied_embeddings else tensors["lm_head.weight"],
        inverse_frequencies=rope.inverse_frequencies.to(embedding.device),
        rope_scale=rope.scale,
    )


def expected_shapes(config: Mapping[str, Any], architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all tensors the checkpoint must have."""
    a, kind = architecture, KINDS[architecture.kind]
    queries, keys = a.heads * a.head_dim, a.kv_heads * a.head_dim
    block: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (a.hidden,),
        "post_attention_layernorm.weight": (a.hidden,),
        "self_attn.o_proj.weight": (a.hidden, queries),
        "mlp.down_proj.weight": (a.hidden, a.intermediate),
    }
    if kind.fused:
        block["self_attn.qkv_proj.weight"] = (queries + 2 * keys, a.hidden)
        block["mlp.gate_up_proj.weight"] = (2 * a.intermediate, a.hidden)
    else:
        block["self_attn.q_proj.weight"] = (queries, a.hidden)
        block["self_attn.k_proj.weight"] = block["self_attn.v_proj.weight"] = (keys, a.hidden)
        block["mlp.gate_proj.weight"] = block["mlp.up_proj.weight"] = (a.intermediate, a.hidden)
    biased = "qkv" if kind.always_bias else "qkvo" if config.get("attention_bias") and not kind.fused else ""
    for letter in biased:
        rows = block[f"self_attn.{letter}_proj.weight"][0]
        block[f"self_attn.{letter}_proj.bias"] = (rows,)
    if kind.qk_norm:
        block["self_attn.q_norm.weight"] = block["self_attn.k_norm.weight"] = (a.head_dim,)
    shapes = {f"model.layers.{i}.{name}": shape for i in range(a.layers) for name, shape in block.items()}
    shapes |= {"model.embed_tokens.weight": (a.vocab, a.hidden), "model.norm.weight": (a.hidden,)}
    return shapes if a.tied_embeddings else {**shapes, "lm_head.weight": (a.vocab, a.hidden)}


def _layer(architecture: Architecture, tensors: Mapping[str, torch.Tensor], prefix: str) -> Layer:
    a = architecture
    if KINDS[a.kind].fused:
        queries, keys = a.heads * a.head_dim, a.kv_heads * a.head_dim
        q, k, v = torch.split(tensors[prefix + "self_attn.qkv_proj.weight"], [queries, keys, keys])
        gate, up = tensors[prefix + "mlp.gate_up_proj.weight"].chunk(2)
    else:
        q, k, v = (tensors[f"{prefix}self_attn.{letter}_proj.weight"] for letter in "qkv")
        gate, up = (tensors[f"{prefix}mlp.{name}_proj.weight"] for name in ("gate", "up"))
    return Layer(
        attention_norm=tensors[prefix + "input_layernorm.weight"],
        q=q,
        k=k,
        v=v,
        o=tensors[prefix + "self_attn.o_proj.weight"],
        q_bias=tensors.get(prefix + "self_attn.q_proj.bias"),
        k_bias=tensors.get(prefix + "self_attn.k_proj.bias"),
        v_bias=tensors.get(prefix + "self_attn.v_proj.bias"),
        o_bias=tensors.get(prefix + "self_attn.o_proj.bias"),
        q_norm=tensors.get(prefix + "self_attn.q_norm.weight"),
        k_norm=tensors.get(prefix + "self_attn.k_norm.weight"),
        mlp_norm=tensors[prefix + "post_attention_layernorm.weight"],
        gate=gate,
        up=up,
        down=tensors[prefix + "mlp.down_proj.weight"],
    )


def _position_limit(config: Mapping[str, Any], kind: _Kind) -> int:
    """Positions the model was made for; within a sliding window attention is full, so it ends there."""
    limit = int(config.get("max_position_embeddings") or kind.max_positions)
    window = config.get("sliding_window", kind.sliding_window)
    if config["model_type"] in ("qwen2", "qwen3"):
        window = window if config.get("use_sliding_window") else None
    return min(limit, window) if window else limit


def _activation(config: Mapping[str, Any], kind: _Kind) -> str:
    """Gemma's early releases say "gelu" and mean the tanh approximation."""
    default = "gelu_pytorch_tanh" if kind.gemma else "silu"
    name = config.get("hidden_activation") or config.get("hidden_act") or default
    if kind.gemma and name == "gelu":
        name = default
    if name not in ACTIVATIONS:
        raise ModelError(
            f"the model's activation {name!r} is not supported; choose a model with one of: "
            f"{', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


def _tied(config: Mapping[str, Any], kind: _Kind) -> bool:
    tied = config.get("tie_word_embeddings")
    return kind.tied if tied is None else bool(tied)


def _required(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise ModelError(f"config.json has {key} = {value!r}, expected a positive integer; repair the file")
    return value


def _projections(found: Shapes) -> list[str]:
    """The matrices of the first block with their shapes, for messages (GPT-2's are [in, out])."""
    first = {name: list(shape) for name, shape in found.items() if ".0." in name and len(shape) > 1}
    return [f"{name.removesuffix('.weight')} {shape}" for name, shape in sorted(first.items())]


def _compare(expected: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]]) -> None:
    wrong = [
        f"{name} is {list(found[name])}, expected {list(shape)}"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    problems = [("missing", sorted(expected.keys() - found.keys()))]
    problems += [("unexpected", sorted(found.keys() - expected.keys())), ("of another shape", wrong)]
    listed = "; ".join(f"{what}: {_shorten(names)}" for what, names in problems if names)
    if listed:
        raise ModelError(
            f"the model's tensors do not fit its config.json ({listed}); use a complete, unmodified "
            "checkpoint"
        )


def _shorten(names: list[str], shown: int = 4) -> str:
    rest = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + rest
