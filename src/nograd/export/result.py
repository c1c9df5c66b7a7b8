"""What an export is: its formats, and the record of what was written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nograd.export.base import Base
from nograd.export.verify import Check

FORMATS: dict[str, str] = {
    "peft": "a LoRA adapter per stage",
    "merged": "a whole model per stage",
    "npz": "coefficients and directions as NumPy arrays",
}
Format = Literal["peft", "merged", "npz"]


@dataclass(frozen=True)
class StageExport:
    """folder: its name in the export, and the adapter's. norm: of the coefficients; untouched: they are all zero.
    check: None where it was not verified."""

    name: str
    folder: str
    norm: float
    untouched: bool
    check: Check | None


@dataclass(frozen=True)
class Export:
    """What was written. generation: after how many. dtype: of the written weights, "mixed" of a merged model whose
    tensors have several; exact: it is float32, so nothing was rounded to anything less. rank and max_lora_rank
    (what a vLLM server needs, None if it has none so large) are of peft adapters, else None."""

    path: Path
    format: Format
    generation: int
    dtype: str
    exact: bool
    verified: bool
    with_base: bool
    base: Base
    stages: tuple[StageExport, ...]
    rank: int | None = None
    max_lora_rank: int | None = None
