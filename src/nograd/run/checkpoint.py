"""The search state as safetensors bytes, with the hash that shows damage."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from nograd.errors import RunError

Arrays = dict[str, NDArray[Any]]


def encode(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Bytes that depend only on the arrays (names, dtypes, shapes, values)."""
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def digest(data: bytes) -> str:
    """sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


def read(path: Path, expected: str) -> Arrays:
    """The arrays of a checkpoint. Raises RunError if it is missing or its sha256 is not the expected one."""
    remedy = (
        "restore it from a copy, or delete its generation's line and all later ones from generations.jsonl "
        "and resume to compute them again"
    )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunError(f"checkpoint {path} cannot be read ({error.strerror}); {remedy}") from error
    found = digest(data)
    if found != expected:
        raise RunError(f"checkpoint {path} is damaged (sha256 {found}, recorded {expected}); {remedy}")
    return load(data)
