"""One standard PEFT LoRA adapter per stage, equal to its delta: scaling 1, one rank everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from nograd.errors import ExportError
from nograd.export.base import Base
from nograd.export.projections import lora_factors, lora_rank, projections
from nograd.export.tuned import Tuned

VLLM_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM's --max-lora-rank may be (vllm/config/lora.py, MaxLoRARanks; newer versions also take 1)."""


def max_lora_rank(rank: int) -> int | None:
    """The smallest --max-lora-rank of a vLLM server for adapters of this rank; None if there is none."""
    return next((allowed for allowed in VLLM_RANKS if allowed >= rank), None)


def write_adapter(tuned: Tuned, module: int, folder: Path, base: Base, dtype: torch.dtype = torch.float32) -> None:
    """adapter_config.json and adapter_model.safetensors of one module."""
    rank = lora_rank(tuned.architecture, tuned.subspace.spec.dim)
    tensors = {}
    for projection in projections(tuned.architecture):
        a, b = lora_factors(tuned, module, projection, rank)
        for name, factor in (("lora_A", a), ("lora_B", b)):
            tensors[f"base_model.model.{projection.path}.{name}.weight"] = factor.to(dtype).contiguous()
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = json.dumps(_config(tuned, rank, base), default=sorted, indent=2, sort_keys=True)
    (folder / "adapter_config.json").write_text(config + "\n", encoding="utf-8")


def check_peft() -> None:
    """Raise ExportError if the peft library is not installed."""
    try:
        import peft  # noqa: F401
    except ImportError as error:
        raise ExportError(
            f"format = 'peft' needs the peft library ({error}); install it with: pip install 'nograd[export]'"
        ) from error


def _config(tuned: Tuned, rank: int, base: Base) -> dict[str, Any]:
    """LoraConfig's own fields, so that they are those of the installed version of peft."""
    from peft import LoraConfig

    config: Any = LoraConfig(
        r=rank,
        lora_alpha=rank,
        lora_dropout=0.0,
        bias="none",
        target_modules=sorted({projection.name for projection in projections(tuned.architecture)}),
        task_type="CAUSAL_LM",
        inference_mode=True,
        base_model_name_or_path=base.path_for_adapters,
        revision=base.revision,
    )
    fields: dict[str, Any] = config.to_dict()
    return fields
