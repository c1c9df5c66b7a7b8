"""GGUF files: dequantised once by transformers and kept in the cache as an ordinary model folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers.pre_tokenizers import ByteLevel, Digits
from tokenizers.pre_tokenizers import Sequence as PreTokenizers

from nograd.assets import cache_dir, file_sha256, staging
from nograd.errors import ModelError
from nograd.llm.checkpoint import in_short
from nograd.llm.fingerprint import remembered

CONVERSION = "1"
"""Changes when the converted folders would; old ones are then left alone and made anew."""


def converted_folder(file: Path, sha256: str | None = None) -> Path:
    """A folder with config.json, float32 safetensors and tokenizer files for a GGUF file.

    sha256: of the file, if it is known already. Raises ModelError if transformers cannot read the file."""
    sha256 = sha256 or remembered("sha256", [file], lambda: file_sha256(file))
    target = cache_dir() / "models" / f"{file.stem}-{sha256[:16]}-v{CONVERSION}"
    if target.is_dir():
        return target
    try:
        with staging(target) as folder:
            if not target.is_dir():
                _convert(file, folder)
                os.replace(folder, target)
    except OSError as error:
        raise ModelError(
            f"{file.name} cannot be unpacked into {target.parent} ({error}); free some space, or set "
            "NOGRAD_CACHE to a folder that can be written"
        ) from error
    return target


def _convert(file: Path, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        where: dict[str, Any] = {"gguf_file": file.name, "trust_remote_code": False}
        model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **where)
        tokenizer = AutoTokenizer.from_pretrained(file.parent, **where)
    except Exception as error:  # transformers promises no types here
        raise ModelError(
            f"transformers cannot read {file} ({in_short(error)}); use a whole GGUF file of a supported "
            "architecture, or the model's safetensors version"
        ) from error
    finally:
        logging.enable_progress_bar()  # type: ignore[no-untyped-call]
    if _field(file, "tokenizer.ggml.pre") == "smollm":
        tokenizer.backend_tokenizer.pre_tokenizer = PreTokenizers(
            [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
        )
    tokenizer.save_pretrained(folder)
    config = model.config.to_dict()
    _drop_tokens_from(config["vocab_size"], folder / "tokenizer.json")
    for key in ("quantization_config", "_name_or_path"):
        config.pop(key, None)
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", {"eos_token_id": model.generation_config.eos_token_id})
    state = model.state_dict()
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, folder / "model.safetensors")


def _drop_tokens_from(vocab: int, file: Path) -> None:
    """Take out added tokens without an embedding: transformers adds <|endoftext|> where there is none."""
    description = json.loads(file.read_text(encoding="utf-8"))
    description["added_tokens"] = [token for token in description["added_tokens"] if token["id"] < vocab]
    file.write_text(json.dumps(description, ensure_ascii=False), encoding="utf-8")


def _field(file: Path, name: str) -> Any:
    """A metadata field of a GGUF file, or None. transformers drops `tokenizer.ggml.pre`, which says how
    text is split before BPE; SmolLM's digits stand alone there."""
    from gguf import GGUFReader

    field = GGUFReader(file).get_field(name)
    return field.contents() if field else None


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")
