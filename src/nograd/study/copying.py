"""A run directory as bytes, for workers that do not see the sweep directory."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from nograd.run import layout
from nograd.run.files import write_atomic

Files = Mapping[str, bytes]
"""Path below the run directory → content."""

_LAST = (layout.CONFIG, layout.GENERATIONS)
"""Files that make what was written before them count (see `run.directory`); so they are written last."""


class Changes:
    """Tells what has changed in a run directory since it was last asked."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: dict[str, bytes] = {}
        self.take()

    def take(self) -> Files:
        """The files that are new or have other content."""
        changed = {}
        for name, data in snapshot(self._root).items():
            digest = sha256(data).digest()
            if self._seen.get(name) != digest:
                self._seen[name] = digest
                changed[name] = data
        return changed


def snapshot(root: Path) -> Files:
    """All files of a run directory but its lock; none if there is no such directory."""
    paths = sorted(path for path in root.rglob("*") if path.is_file() and not _private(path))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def restore(root: Path, files: Files) -> None:
    """Write files into a run directory so that a kill at any point leaves one that can be resumed."""
    for name in sorted(files, key=lambda name: (_LAST.index(name) if name in _LAST else -1, name)):
        write_atomic(root / name, files[name])


def _private(path: Path) -> bool:
    return path.name in (layout.LOCK, layout.OWNER) or path.name.endswith(".tmp")
