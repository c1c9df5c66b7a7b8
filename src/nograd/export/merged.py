"""A whole model folder per stage, W + ΔW, as transformers, vLLM and others read it.

The tensors go from file to file, so at most one file of the model is in memory at a time. Tied embeddings stay
tied: an lm_head that only repeats them is not written.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from nograd.export.projections import add_delta, projections
from nograd.export.tuned import Tuned
from nograd.llm.checkpoint import read_json, weight_files
from nograd.llm.sources import CONFIG_PATTERNS

INDEX = "model.safetensors.index.json"
STORED = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}


def write_model(tuned: Tuned, module: int | None, folder: Path, dtype: torch.dtype | None = None) -> None:
    """The model with one module's delta, or untouched (None). dtype: None keeps that of each stored tensor."""
    folder.mkdir(parents=True)
    _copy_tokenizer(tuned.source.folder, folder)
    _write_json(folder / "config.json", _config(tuned, dtype))
    files = weight_files(tuned.source.folder)
    names = [f"model-{i + 1:05d}-of-{len(files):05d}.safetensors" for i in range(len(files))]
    where: dict[str, str] = {}
    size = 0
    for file, name in zip(files, names if len(files) > 1 else ["model.safetensors"], strict=True):
        tensors = _changed(tuned, module, load_file(file), dtype)
        save_file(tensors, folder / name, metadata={"format": "pt"})
        where |= dict.fromkeys(tensors, name)
        size += sum(tensor.nbytes for tensor in tensors.values())
    if len(files) > 1:
        _write_json(folder / INDEX, {"metadata": {"total_size": size}, "weight_map": where})


def stored_dtype(folder: Path) -> str:
    """The dtype of a model folder's tensors, "mixed" if they have several."""
    found: set[str] = set()
    for file in weight_files(folder):
        with safe_open(file, framework="pt") as stored:
            found |= {stored.get_slice(name).get_dtype() for name in stored.keys()}  # noqa: SIM118  (not a dict)
    return STORED.get(found.pop(), "mixed") if len(found) == 1 else "mixed"


def _changed(
    tuned: Tuned, module: int | None, tensors: dict[str, torch.Tensor], dtype: torch.dtype | None
) -> dict[str, torch.Tensor]:
    """The tensors of one file as they are to be written."""
    if tuned.architecture.tied_embeddings:
        tensors.pop("lm_head.weight", None)
    if module is not None:
        for projection in projections(tuned.architecture):
            if (weight := tensors.get(f"{projection.path}.weight")) is not None:
                wide = weight if dtype is None else weight.float()
                tensors[f"{projection.path}.weight"] = add_delta(tuned, module, projection, wide)
    return {name: tensor.to(dtype or tensor.dtype).contiguous() for name, tensor in tensors.items()}


def _config(tuned: Tuned, dtype: torch.dtype | None) -> dict[str, Any]:
    """config.json; with the architecture's class, which servers look for and a converted GGUF file lacks."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    config = read_json(tuned.source.folder / "config.json")
    config.pop("_name_or_path", None)
    if not config.get("architectures"):
        config["architectures"] = [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config["model_type"]]]
    if dtype is not None:
        config.pop("torch_dtype", None)
        config["dtype"] = str(dtype).removeprefix("torch.")
    return config


def _copy_tokenizer(source: Path, folder: Path) -> None:
    """Everything of the folder that is neither weights nor config.json."""
    files = {file for pattern in CONFIG_PATTERNS for file in source.glob(pattern)}
    for file in sorted(files):
        if file.name not in ("config.json", INDEX):
            shutil.copyfile(file, folder / file.name)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")
