"""What identifies a model's weights: a hash of all tensors, remembered so that a file is hashed only once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nograd.assets import cache_dir
from nograd.errors import ModelError


def fingerprint(files: Sequence[Path]) -> str:
    """Hex sha256 over the tensors of safetensors files, in the order of their names: name, dtype, shape and
    stored bytes. How the tensors are split over files does not matter."""
    return remembered("fingerprint", files, lambda: _hash_tensors(files))


def remembered(what: str, files: Sequence[Path], compute: Callable[[], str]) -> str:
    """compute(), or its result of an earlier time while the files have the same path, size and mtime.

    Results lie in nograd's cache, not beside the files: those may be read-only or another program's."""
    state = [(os.path.realpath(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    key = hashlib.sha256(json.dumps([what, state]).encode()).hexdigest()
    note = cache_dir() / "digests" / key
    if note.is_file() and len(known := note.read_text(encoding="ascii")) == 64:
        return known
    result = compute()
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time, nothing else
        note.parent.mkdir(parents=True, exist_ok=True)
        part = note.with_name(f"{key}.{os.getpid()}")
        part.write_text(result, encoding="ascii")
        os.replace(part, note)
    return result


def _hash_tensors(files: Sequence[Path]) -> str:
    headers = [(file, name, entry) for file in files for name, entry in _header(file).items()]
    digest = hashlib.sha256()
    for file, name, entry in sorted(headers, key=lambda header: header[1]):
        digest.update(json.dumps([name, entry["dtype"], entry["shape"]]).encode())
        start, end = entry["data_offsets"]
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            origin = 8 + int.from_bytes(data[:8], "little")
            with memoryview(data) as view, view[origin + start : origin + end] as tensor:
                digest.update(tensor)
    return digest.hexdigest()


def _header(file: Path) -> dict[str, Any]:
    """Tensor entries of a safetensors file: 8 bytes length, then JSON
    (https://huggingface.co/docs/safetensors, "Format")."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if length > file.stat().st_size:
            raise ModelError(f"{file} is not a whole safetensors file; download the model again")
        header: dict[str, Any] = json.loads(opened.read(length))
    header.pop("__metadata__", None)
    return header
