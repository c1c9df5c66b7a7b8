"""Writing that survives a kill at any point: a file is whole or absent, a line is whole or a torn tail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nograd.errors import RunError


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file's content in one step: temporary file, fsync, rename, fsync of the folder.

    Only one process may write to the folder at a time (the run's lock sees to that). A temporary file that
    a killed process left is written over by the process that does its work again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        _write_synced(temporary, data, "wb")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def append_line(path: Path, line: bytes) -> None:
    """Add one line (given without its newline) to the end of a file and wait until it is on disk."""
    new = not path.exists()
    _write_synced(path, line + b"\n", "ab")
    if new:
        _sync_folder(path.parent)


def whole_lines(data: bytes) -> list[bytes]:
    """The lines that ended with a newline; what follows the last newline is a torn write."""
    return data.split(b"\n")[:-1]


def drop_torn_tail(path: Path) -> None:
    """Cut a file after its last newline, if a write was torn there."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)
            os.fsync(file.fileno())


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn what the disk refuses into a RunError. For writes only: an evaluator's errors are its own."""
    try:
        yield
    except OSError as error:
        where = error.filename or "the run directory"
        raise RunError(
            f"cannot write {where}: {error.strerror}; make it writable or free disk space, then resume"
        ) from error


def _write_synced(path: Path, data: bytes, mode: str) -> None:
    with path.open(mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
