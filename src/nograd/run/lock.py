"""One process at a time in a run directory; a second one is told who is there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from nograd.errors import RunError
from nograd.run import layout
from nograd.run.files import disk_errors, write_atomic
from nograd.run.strict_json import dumps, loads


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the directory's lock; the operating system frees it when the process dies. Raises RunError if it
    is held."""
    lock = FileLock(root / layout.LOCK)
    owner = root / layout.OWNER
    with disk_errors():
        free = _acquired(lock)
    if not free:
        raise RunError(
            f"{root} is in use by {_who(owner)}; wait until it has ended or choose another directory"
        )
    try:
        with disk_errors():
            write_atomic(owner, dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def _acquired(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def _who(path: Path) -> str:
    try:
        owner = loads(path.read_bytes())
        return f"process {owner['pid']} on {owner['host']}"
    except (OSError, ValueError, KeyError):
        return "another process"
