"""Tiny random-weight models: as transformers runs them, as nograd runs them, and as a folder to load."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from nograd.agent.scheduler import Scheduler
from nograd.llm.architecture import Architecture, Weights
from nograd.llm.delta import Perturbation
from nograd.llm.engine import Engine
from nograd.llm.loading import load_chat, load_weights
from nograd.llm.requests import CompletionRequest, ScoreRequest
from nograd.llm.subspace import Subspace, SubspaceSpec, build_subspace
from nograd.llm.transformer import Transformer

CPU = torch.device("cpu")
SIZES: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 61,
    "hidden_size": 48,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 192,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LAYOUTS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama head_dim": {"head_dim": 64, "num_attention_heads": 3, "num_key_value_heads": 1},
    "llama head_dim 16": {"head_dim": 16},
    "llama tied": {"tie_word_embeddings": True},
    "llama biases": {"attention_bias": True},
    "mistral": {"model_type": "mistral", "sliding_window": None, "num_key_value_heads": 4},
    "qwen2": {"model_type": "qwen2", "hidden_size": 128},
    "qwen3": {"model_type": "qwen3"},
    "gemma": {"model_type": "gemma"},
    "phi3": {"model_type": "phi3", "hidden_size": 128},
    "phi3 partial": {
        "model_type": "phi3",
        "hidden_size": 128,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    },
}
"""Every layout that is supported. head_dim 32 and 64 take the CPU kernels, 16 the plain operations."""

MODULES = 3
SPEC = SubspaceSpec(modules=MODULES, dim=4, strength=0.7)
EOS = frozenset({2, 7})


@dataclass(frozen=True)
class Tiny:
    """One model twice: transformers' own, and nograd's parts of the same files."""

    hub: Any
    architecture: Architecture
    weights: Weights

    def subspace(self, spec: SubspaceSpec = SPEC) -> Subspace:
        return build_subspace(self.architecture, self.weights, spec, "tiny", None)

    def engine(
        self,
        subspace: Subspace | None,
        *,
        plain: bool = False,
        eos_ids: frozenset[int] = EOS,
        token_budget: int | None = 4096,
        pass_tokens: int = 1024,
    ) -> Engine:
        """An engine in the dtype and on the device of the weights."""
        embedding = self.weights.embedding
        perturbation = (
            None
            if subspace is None
            else Perturbation(self.architecture, subspace, embedding.device, embedding.dtype)
        )
        transformer = Transformer(self.architecture, self.weights, plain=plain)
        return Engine(transformer, perturbation, eos_ids, token_budget, pass_tokens)


def save_tiny(folder: Path, settings: Mapping[str, Any], seed: int = 0) -> Any:
    """Save a random-weight model, its norms and biases random too; returns it."""
    torch.manual_seed(seed)
    values = {**SIZES, **settings}
    config = CONFIG_MAPPING[values.pop("model_type")](**values)
    build: Any = AutoModelForCausalLM.from_config
    model = build(config, attn_implementation="eager").eval()
    for name, parameter in model.named_parameters():
        if "norm" in name or "bias" in name:
            parameter.data += 0.3 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return model


def tiny(
    folder: Path,
    settings: Mapping[str, Any],
    dtype: torch.dtype = torch.float32,
    device: torch.device = CPU,
) -> Tiny:
    """A model of these settings (over SIZES)."""
    return Tiny(save_tiny(folder, settings), *load_weights(folder, dtype, device))


def thetas(count: int, size: int, seed: int = 0, scale: float = 0.5) -> list[bytes]:
    """Random coefficients as requests carry them; the first are zero."""
    drawn = np.random.default_rng(seed).normal(size=(count, size), scale=scale).astype(np.float32)
    drawn[0] = 0
    return [row.tobytes() for row in drawn]


def values_of(theta: bytes) -> NDArray[np.float32]:
    return np.frombuffer(theta, dtype=np.float32)


def merged(hub: Any, architecture: Architecture, subspace: Subspace, module: int, theta: bytes) -> Any:
    """transformers' model with the module's delta added to the weights of every target."""
    changed = copy.deepcopy(hub)
    state = changed.state_dict()
    for layer in range(architecture.layers):
        prefix = f"model.layers.{layer}.self_attn."
        delta = {t: subspace.delta(values_of(theta), module, layer, t) for t in ("q", "v", "o")}
        state[f"{prefix}o_proj.weight"] += delta["o"]
        if architecture.kind == "phi3":
            values = architecture.kv_heads * architecture.head_dim
            state[f"{prefix}qkv_proj.weight"][: delta["q"].shape[0]] += delta["q"]
            state[f"{prefix}qkv_proj.weight"][-values:] += delta["v"]
        else:
            state[f"{prefix}q_proj.weight"] += delta["q"]
            state[f"{prefix}v_proj.weight"] += delta["v"]
    return changed


@torch.no_grad()
def plain_completion(hub: Any, request: CompletionRequest, eos_ids: frozenset[int]) -> tuple[list[int], str]:
    """Greedy decoding one token at a time, everything computed anew for each."""
    ids = list(request.prompt)
    while len(ids) < len(request.prompt) + request.max_tokens:
        token = int(hub(torch.tensor([ids])).logits[0, -1].argmax())
        if token in eos_ids:
            return ids[len(request.prompt) :], "stop"
        ids.append(token)
    return ids[len(request.prompt) :], "length"


@torch.no_grad()
def plain_score(hub: Any, request: ScoreRequest) -> NDArray[np.float64]:
    """Log-probability of every target token, from one pass over prompt and target."""
    ids = torch.tensor([[*request.prompt, *request.target]])
    log_probabilities = hub(ids).logits[0].double().log_softmax(-1)
    first = len(request.prompt)
    return np.array(
        [float(log_probabilities[first - 1 + i, token]) for i, token in enumerate(request.target)]
    )


TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ("<unk>", "</s>", "<|end|>", "<|user|>", "<|system|>", "<|assistant|>")
CHARACTERS = [chr(code) for code in (10, *range(32, 127))]


def save_tiny_chat(folder: Path, **settings: Any) -> Path:
    """A model folder as the hub has them: random weights, a tokenizer of characters, a chat template."""
    vocab = {text: i for i, text in enumerate((*SPECIAL, *CHARACTERS))}
    sizes = {"vocab_size": len(vocab), "max_position_embeddings": 2048, "eos_token_id": [1, 2]}
    save_tiny(folder, {**sizes, "pad_token_id": 1, "bos_token_id": None, **settings})
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    template = {"eos_token": "</s>", "unk_token": "<unk>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(template))
    generation = {"eos_token_id": [1, 2], "repetition_penalty": 9.0, "no_repeat_ngram_size": 2}
    (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder


def tiny_scheduler(folder: Path, stages: Sequence[str], dim: int = 4) -> Scheduler:
    """A scheduler over the model of a folder that `save_tiny_chat` made; `dim` coefficients per stage."""
    architecture, weights = load_weights(folder, torch.float32, CPU)
    spec = SubspaceSpec(len(stages), dim, strength=0.5)
    subspace = build_subspace(architecture, weights, spec, "tiny", None)
    perturbation = Perturbation(architecture, subspace, CPU, torch.float32)
    chat = load_chat(folder, "tiny")
    engine = Engine(Transformer(architecture, weights), perturbation, chat.eos_ids, 20_000)
    return Scheduler(engine, chat, stages)
