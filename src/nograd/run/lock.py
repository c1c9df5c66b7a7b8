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
    try:
        with disk_errors():
            lock.acquire(timeout=0)
    except Timeout as error:
        raise RunError(
            f"{root} is in use by {_owner(root)}; wait until it has ended or choose another directory"
        ) from error
    try:
        write_atomic(root / layout.OWNER, dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        yield
    finally:
        (root / layout.OWNER).unlink(missing_ok=True)
        lock.release()


def _owner(root: Path) -> str:
    try:
        owner = loads((root / layout.OWNER).read_bytes())
        return f"process {owner['pid']} on {owner['host']}"
    except (OSError, ValueError, KeyError):
        return "another process"
