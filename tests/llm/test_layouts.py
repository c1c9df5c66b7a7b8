"""The mapping from Hugging Face checkpoints: a plain forward over it gives transformers' logits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file, save_file
from transformers import (
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    MixtralConfig,
    MixtralForCausalLM,
)

from nograd.errors import ModelError
from nograd.llm.architecture import Architecture, Weights
from nograd.llm.checkpoint import read_json
from nograd.llm.layouts import check_supported, read_architecture
from nograd.llm.loading import load_weights

SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0, 1.5],
    "long_factor": [2.0, 4.0],
    "partial_rotary_factor": 0.5,
}
CASES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama"},
    "llama tied": {"model_type": "llama", "tie_word_embeddings": True},
    "llama head_dim": {"model_type": "llama", "head_dim": 16},
    "llama biases": {"model_type": "llama", "attention_bias": True},
    "llama gelu": {"model_type": "llama", "hidden_act": "gelu"},
    "llama theta": {"model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
    "llama linear": {
        "model_type": "llama",
        "rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0},
    },
    "llama dynamic": {
        "model_type": "llama",
        "rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0},
    },
    "llama llama3": {"model_type": "llama", "rope_parameters": LLAMA3},
    "llama yarn": {"model_type": "llama", "rope_parameters": YARN},
    "mistral": {"model_type": "mistral", "sliding_window": None},
    "mistral window": {"model_type": "mistral", "sliding_window": 20},
    "qwen2": {"model_type": "qwen2"},
    "qwen2 tied": {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", "head_dim": 16},
    "gemma": {"model_type": "gemma", "head_dim": 16},
    "phi3": {"model_type": "phi3"},
    "phi3 partial": {"model_type": "phi3", "rope_parameters": {**LONGROPE, "rope_type": "default"}},
    "phi3 longrope": {
        "model_type": "phi3",
        "original_max_position_embeddings": 24,
        "rope_parameters": LONGROPE,
    },
}


def save_tiny(folder: Path, settings: dict[str, Any]) -> torch.nn.Module:
    """Save a random-weight model of this configuration, norms and biases random too; returns it."""
    torch.manual_seed(0)
    values = {**SIZES, **settings}
    config = CONFIG_MAPPING[values.pop("model_type")](**values)
    model = AutoModelForCausalLM.from_config(config).eval()
    for name, parameter in model.named_parameters():
        if "norm" in name or "bias" in name:
            parameter.data += 0.3 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return model


def rms_norm(x: torch.Tensor, weight: torch.Tensor, a: Architecture) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + a.norm_eps) * (a.norm_offset + weight)


def rotate(x: torch.Tensor, angles: torch.Tensor, a: Architecture, scale: float) -> torch.Tensor:
    """x: [heads, tokens, head_dim]; angles: [tokens, rope_dims / 2]."""
    turned, rest = x[..., : a.rope_dims], x[..., a.rope_dims :]
    left, right = turned.chunk(2, dim=-1)
    cos, sin = angles.cos() * scale, angles.sin() * scale
    return torch.cat([left * cos - right * sin, right * cos + left * sin, rest], dim=-1)


def plain_logits(a: Architecture, w: Weights, ids: torch.Tensor) -> torch.Tensor:
    """Logits [tokens, vocab] for one sequence of ids, straight from the definition."""
    activation = {
        "silu": F.silu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    }[a.activation]
    angles = torch.arange(len(ids))[:, None] * w.inverse_frequencies
    x = w.embedding[ids] * a.embedding_scale
    for layer in w.layers:
        h = rms_norm(x, layer.attention_norm, a)
        q, k, v = (
            F.linear(h, weight, bias).view(len(ids), -1, a.head_dim).transpose(0, 1)
            for weight, bias in ((layer.q, layer.q_bias), (layer.k, layer.k_bias), (layer.v, layer.v_bias))
        )
        if layer.q_norm is not None and layer.k_norm is not None:
            q, k = rms_norm(q, layer.q_norm, a), rms_norm(k, layer.k_norm, a)
        q, k = rotate(q, angles, a, w.rope_scale), rotate(k, angles, a, w.rope_scale)
        k, v = (t.repeat_interleave(a.heads // a.kv_heads, dim=0) for t in (k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(mixed.transpose(0, 1).reshape(len(ids), -1), layer.o, layer.o_bias)
        h = rms_norm(x, layer.mlp_norm, a)
        x = x + F.linear(activation(F.linear(h, layer.gate)) * F.linear(h, layer.up), layer.down)
    return F.linear(rms_norm(x, w.final_norm, a), w.head)


def load(folder: Path) -> tuple[Architecture, Weights]:
    return load_weights(folder, torch.float32, torch.device("cpu"))


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_transformers(case: str, tmp_path: Path) -> None:
    model = save_tiny(tmp_path, CASES[case])
    architecture, weights = load(tmp_path)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, 61, (min(40, architecture.max_positions),), generator=generator)
    with torch.no_grad():
        expected = model(ids[None]).logits[0]
        found = plain_logits(architecture, weights, ids)
    assert (found - expected).abs().max() < 1e-4
    assert expected.std() > 0.01


@pytest.mark.parametrize(
    ("case", "positions"),
    [("llama", 64), ("mistral", 64), ("mistral window", 20), ("phi3 longrope", 24), ("llama yarn", 64)],
)
def test_positions_end_where_the_mapping_stops_being_exact(case: str, positions: int, tmp_path: Path) -> None:
    save_tiny(tmp_path, CASES[case])
    assert load(tmp_path)[0].max_positions == positions


def test_sliding_window_beyond_its_positions_would_differ(tmp_path: Path) -> None:
    """The limit is needed: past the window, full attention gives other logits."""
    model = save_tiny(tmp_path, CASES["mistral window"])
    architecture, weights = load(tmp_path)
    ids = torch.arange(3, 43)
    with torch.no_grad():
        difference = (plain_logits(architecture, weights, ids) - model(ids[None]).logits[0]).abs().amax(-1)
    assert difference[:20].max() < 1e-4
    assert difference[20:].max() > 1e-3


def test_old_style_rope_keys_mean_the_same(tmp_path: Path) -> None:
    save_tiny(tmp_path, CASES["llama llama3"])
    _, new = load(tmp_path)
    config = read_json(tmp_path / "config.json")
    scaling = config.pop("rope_parameters")
    old_style = {**config, "rope_theta": scaling.pop("rope_theta"), "rope_scaling": scaling}
    (tmp_path / "config.json").write_text(json.dumps(old_style))
    _, old = load(tmp_path)
    assert torch.equal(old.inverse_frequencies, new.inverse_frequencies)
    assert len(new.inverse_frequencies.unique()) == 4


def test_defaults_a_config_may_leave_out() -> None:
    """Hub configurations leave out what equals the class's default; the class is the authority."""
    needed = {
        "vocab_size": 61,
        "hidden_size": 256,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 32,
    }
    for model_type in ("llama", "mistral", "qwen2", "qwen3", "gemma", "phi3"):
        parsed = CONFIG_MAPPING[model_type](**needed)
        a = read_architecture({**needed, "model_type": model_type})
        assert a.kv_heads == parsed.num_key_value_heads, model_type
        assert a.head_dim == (getattr(parsed, "head_dim", None) or 8), model_type
        assert a.norm_eps == parsed.rms_norm_eps, model_type
        assert a.tied_embeddings == parsed.tie_word_embeddings, model_type
        window = getattr(parsed, "sliding_window", None) or parsed.max_position_embeddings
        assert a.max_positions == min(window, parsed.max_position_embeddings), model_type


def test_tied_head_is_the_embedding(tmp_path: Path) -> None:
    save_tiny(tmp_path, CASES["llama tied"])
    _, weights = load(tmp_path)
    assert weights.head is weights.embedding


def test_gemma_scale_is_rounded_to_the_dtype() -> None:
    config = {**SIZES, "model_type": "gemma", "hidden_size": 2048}
    assert read_architecture(config, torch.bfloat16).embedding_scale == 45.25
    assert read_architecture(config, torch.float32).embedding_scale == pytest.approx(2048**0.5, rel=1e-7)


def test_gpt2_is_refused_by_what_was_found(tmp_path: Path) -> None:
    config = GPT2Config(vocab_size=61, n_embd=32, n_layer=1, n_head=2, n_positions=64)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"'gpt2'.*transformer\.h\.0\.attn\.c_attn \[32, 96\].*llama"):
        load(tmp_path)


def test_mixture_of_experts_is_refused_by_what_was_found(tmp_path: Path) -> None:
    config = MixtralConfig(**{**SIZES, "num_hidden_layers": 1, "num_local_experts": 2})
    MixtralForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"'mixtral'.*experts"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"model_type": "gemma2"}, "gemma2"),
        ({"model_type": "mamba"}, "mamba"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised.*quantization_config"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"hidden_act": "relu2"}, "'relu2'.*silu"),
        ({"rope_scaling": {"type": "mrope"}}, "'mrope'.*llama3"),
        ({"rope_scaling": {"type": "linear"}}, "'linear'.*repair"),
        ({"hidden_size": None}, "hidden_size = None"),
        ({"num_attention_heads": 5}, "num_attention_heads = 5"),
    ],
)
def test_refusals_name_what_was_found(extra: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_architecture({**SIZES, "model_type": "llama", **extra})


def test_every_kind_but_the_known_is_refused() -> None:
    for model_type in CONFIG_MAPPING:
        if model_type not in ("llama", "mistral", "qwen2", "qwen3", "gemma", "phi3"):
            with pytest.raises(ModelError, match="not supported"):
                check_supported({"model_type": model_type})


def change_tensors(folder: Path, changes: dict[str, torch.Tensor | None]) -> None:
    """Rewrite a folder's weights with some tensors replaced, added, or (None) taken out."""
    tensors: dict[str, Any] = {**load_file(folder / "model.safetensors"), **changes}
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_file(kept, folder / "model.safetensors")


def test_missing_unexpected_and_misshapen_tensors_are_named(tmp_path: Path) -> None:
    save_tiny(tmp_path, CASES["llama"])
    changes: dict[str, torch.Tensor | None] = {
        "model.layers.1.self_attn.q_norm.weight": torch.ones(8),
        "model.layers.0.mlp.up_proj.weight": None,
        "lm_head.weight": torch.zeros(60, 32),
    }
    change_tensors(tmp_path, changes)
    with pytest.raises(ModelError) as error:
        load(tmp_path)
    for part in (
        "missing: model.layers.0.mlp.up_proj.weight",
        "unexpected: model.layers.1.self_attn.q_norm.weight",
        "lm_head.weight is [60, 32], expected [61, 32]",
    ):
        assert part in str(error.value)


def test_buffers_and_heads_that_old_checkpoints_carry_are_ignored(tmp_path: Path) -> None:
    save_tiny(tmp_path, CASES["llama tied"])
    buffer = "model.layers.0.self_attn.rotary_emb.inv_freq"
    change_tensors(tmp_path, {buffer: torch.ones(4), "lm_head.weight": torch.zeros(61, 32)})
    _, weights = load(tmp_path)
    assert weights.head is weights.embedding


def test_quantised_tensors_are_refused(tmp_path: Path) -> None:
    save_tiny(tmp_path, CASES["llama"])
    change_tensors(tmp_path, {"model.norm.weight": torch.ones(32, dtype=torch.int8)})
    with pytest.raises(ModelError, match=r"model\.norm\.weight.*I8.*float32"):
        load(tmp_path)


def test_config_files_are_json_objects(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps([1]))
    with pytest.raises(ModelError, match="no JSON object"):
        read_json(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match="not valid JSON"):
        read_json(tmp_path / "config.json")
