"""Loading a language model: any spec to an Architecture, its Weights and a chat tokenizer.

transformers is not imported here: a prepared folder is read directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import AddedToken, Tokenizer

from nograd.errors import ModelError, unknown_name
from nograd.llm.architecture import Architecture, Weights
from nograd.llm.chat import ChatTokenizer
from nograd.llm.checkpoint import in_short, read_json, read_tensors, stored_shapes, weight_files
from nograd.llm.fingerprint import fingerprint
from nograd.llm.layouts import check_supported, check_tensors, map_weights, read_architecture
from nograd.llm.sources import MODELS, find_model

__all__ = ["MODELS", "LoadedModel", "load_chat", "load_model", "load_weights", "pick_device", "pick_dtype"]

DTypeName = Literal["auto", "float32", "bfloat16", "float16"]
DeviceName = Literal["auto", "cpu", "cuda"]
DEVICES = ("auto", "cpu", "cuda")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
NATIVE_BFLOAT16 = ("avx512_bf16", "amx_bf16", "bf16")
"""CPU capabilities, as torch names them, that mean bfloat16 products in hardware (x86, x86, ARM)."""


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run. fingerprint: of the stored weights, whatever dtype they were loaded in;
    revision: the hub's commit, None for local models."""

    architecture: Architecture
    weights: Weights
    chat: ChatTokenizer
    fingerprint: str
    revision: str | None
    name: str
    dtype: torch.dtype
    device: torch.device


def load_model(
    spec: str,
    *,
    revision: str | None = None,
    dtype: DTypeName = "auto",
    device: DeviceName = "auto",
) -> LoadedModel:
    """Load a model: an embedded name, a local folder, a .gguf file, or a Hugging Face id.

    The network is used only for what no cache holds. Raises ModelError (or AssetError for the embedded
    model) if it cannot be had or its layout is not supported."""
    chosen_device = pick_device(device)
    chosen_dtype = pick_dtype(dtype, chosen_device)
    source = find_model(spec, revision)
    architecture, weights = load_weights(source.folder, chosen_dtype, chosen_device)
    chat = load_chat(source.folder, source.name)
    if chat.vocab_size > architecture.vocab:
        raise ModelError(
            f"the tokenizer of {source.name} has ids up to {chat.vocab_size - 1}, its embedding only "
            f"{architecture.vocab} rows; use the tokenizer that belongs to the model"
        )
    return LoadedModel(
        architecture=architecture,
        weights=weights,
        chat=chat,
        fingerprint=fingerprint(weight_files(source.folder)),
        revision=source.revision,
        name=source.name,
        dtype=chosen_dtype,
        device=chosen_device,
    )


def pick_device(name: DeviceName) -> torch.device:
    """`auto`: the GPU if torch sees one. Raises ModelError for `cuda` without one, ConfigError for an
    unknown name."""
    if name not in DEVICES:
        raise unknown_name("device", name, DEVICES)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ModelError("device 'cuda' was asked for, but torch sees no CUDA device; use --device cpu")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def pick_dtype(name: DTypeName, device: torch.device) -> torch.dtype:
    """`auto`: bfloat16 on a GPU and on CPUs that multiply it in hardware, else float32.

    The CPU is asked through torch.cpu.get_capabilities; a torch too old to have it counts as without.
    Raises ConfigError for an unknown name."""
    if name in DTYPES:
        return DTYPES[name]
    if name != "auto":
        raise unknown_name("dtype", name, ["auto", *DTYPES])
    capabilities: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    native = device.type == "cuda" or any(capabilities.get(flag) for flag in NATIVE_BFLOAT16)
    return torch.bfloat16 if native else torch.float32


def load_weights(folder: Path, dtype: torch.dtype, device: torch.device) -> tuple[Architecture, Weights]:
    """A model folder's weights in canonical form. Raises ModelError before it reads any of them if the
    layout is not supported or tensors are missing or unexpected."""
    config = read_json(folder / "config.json")
    files = weight_files(folder)
    shapes = stored_shapes(files)
    check_supported(config, shapes)
    architecture = read_architecture(config, dtype)
    check_tensors(config, architecture, shapes)
    return architecture, map_weights(config, architecture, read_tensors(files, dtype, device))


def load_chat(folder: Path, name: str) -> ChatTokenizer:
    """The chat tokenizer of a model folder. Raises ModelError if it lacks a tokenizer or a template."""
    settings = read_json(folder / "tokenizer_config.json")
    tokenizer = _read_tokenizer(folder, settings)
    special = {**read_json(folder / "special_tokens_map.json"), **settings}
    special_tokens = {
        key: text
        for key, value in special.items()
        if key.endswith("_token") and isinstance(text := _content(value), str)
    }
    eos = _eos_ids(folder)
    if (eos_token := special_tokens.get("eos_token")) is not None:
        eos |= {index for index in [tokenizer.token_to_id(eos_token)] if index is not None}
    return ChatTokenizer(tokenizer, _read_template(folder, settings), special_tokens, eos, name)


def _read_tokenizer(folder: Path, settings: dict[str, Any]) -> Tokenizer:
    file = folder / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file)) if file.is_file() else _convert_slow_tokenizer(folder)
    present = tokenizer.get_added_tokens_decoder()
    declared = settings.get("added_tokens_decoder", {})
    for index, entry in sorted(declared.items(), key=lambda item: int(item[0])):
        if int(index) not in present:
            tokenizer.add_tokens([AddedToken(**entry)])
    return tokenizer


def _convert_slow_tokenizer(folder: Path) -> Tokenizer:
    """A tokenizer without tokenizer.json (e.g. only tokenizer.model), converted by transformers."""
    from transformers import AutoTokenizer

    try:
        converted = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer = converted.backend_tokenizer
        assert isinstance(tokenizer, Tokenizer)
    except Exception as error:  # transformers promises no types here
        raise ModelError(
            f"{folder} has no tokenizer.json, and transformers cannot make one from what is there "
            f"({in_short(error)}); add the model's tokenizer.json"
        ) from error
    return tokenizer


def _read_template(folder: Path, settings: dict[str, Any]) -> str | None:
    """chat_template.jinja, else the tokenizer settings' template, its "default" if there are several."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        template = {entry["name"]: entry["template"] for entry in template}.get("default")
    return template


def _eos_ids(folder: Path) -> set[int]:
    """All ids that end a text, from both configurations; nothing else of the generation defaults is read."""
    found: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        value = read_json(folder / name).get("eos_token_id")
        found |= set(value) if isinstance(value, list) else set() if value is None else {value}
    return found


def _content(token: Any) -> Any:
    """The text of a token that is given as text or as {"content": text, …}."""
    return token.get("content") if isinstance(token, dict) else token
