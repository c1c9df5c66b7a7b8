"""Reading a model folder: config.json and safetensors. Pickled weights are never opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from nograd.errors import ModelError

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
FLOATS = ("F64", "F32", "F16", "BF16")


def in_short(error: Exception) -> str:
    """Type and first line of another library's error, to quote in one sentence."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0].strip()}"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty if the file does not exist. Raises ModelError if it is not a JSON object."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON ({error}); download the model again") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} holds no JSON object; download the model again")
    return value


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a model folder, sorted. Raises ModelError if there are none, or not all."""
    index = read_json(folder / "model.safetensors.index.json")
    if index and not (folder / "model.safetensors").is_file():
        files = sorted({folder / name for name in index.get("weight_map", {}).values()})
    elif (folder / "model.safetensors").is_file():
        files = [folder / "model.safetensors"]
    else:
        files = sorted(folder.glob("*.safetensors"))
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise ModelError(f"{folder} lacks {', '.join(missing)}; download the model again")
    if not files:
        pickles = sorted(file.name for pattern in PICKLES for file in folder.glob(pattern))
        found = f"only pickles, which are never opened ({', '.join(pickles)})" if pickles else "no weights"
        raise ModelError(f"{folder} has {found}; use a version of the model with .safetensors files")
    return files


def stored_shapes(files: list[Path]) -> dict[str, list[int]]:
    """Names and shapes of all tensors. Raises ModelError for a damaged file or quantised weights."""
    shapes: dict[str, list[int]] = {}
    for file in files:
        with _opened(file) as stored:
            for name in stored.keys():  # noqa: SIM118  (not a dict)
                tensor = stored.get_slice(name)
                if tensor.get_dtype() not in FLOATS:
                    raise ModelError(
                        f"{name} in {file} is stored as {tensor.get_dtype()}; quantised weights are not "
                        "supported: use a version of the model in bfloat16, float16 or float32"
                    )
                shapes[name] = tensor.get_shape()
    return shapes


def read_tensors(files: list[Path], dtype: torch.dtype, device: torch.device) -> dict[str, torch.Tensor]:
    """All tensors, as fresh copies in dtype on device: a mapped file could change under a long run."""
    tensors = {}
    for file in files:
        with _opened(file) as stored:
            for name in stored.keys():  # noqa: SIM118  (not a dict)
                tensors[name] = stored.get_tensor(name).to(device, dtype, copy=True)
    return tensors


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        with safe_open(file, framework="pt") as stored:
            yield stored
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{file} cannot be read ({error}); download the model again") from error
