"""The folder of an export: built aside, moved into place when it is whole, never over anything else."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from nograd.errors import ExportError

RECORD = "export.json"
"""What was exported, with a list of the folder's entries; the last file to be put in place."""


def check_free(target: Path, force: bool) -> None:
    """Raise ExportError if the folder holds anything; with `force`, only if it is no earlier export."""
    if not target.exists() and not target.is_symlink():
        return
    if not target.is_dir():
        raise ExportError(f"{target} is a file; give --out another folder")
    if not any(target.iterdir()):
        return
    if not (target / RECORD).is_file():
        raise ExportError(f"{target} holds something other than an export; give --out another folder")
    if not force:
        raise ExportError(f"{target} already holds an export; give --out another folder, or --force to replace it")


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to build an export in. Its contents replace those of target's earlier export when the block ends;
    if anything is raised, target stays as it was. Raises ExportError for what the disk refuses."""
    partial = target.parent / f".{target.name}.{os.getpid()}.partial"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
        yield partial
        _replace(target, partial)
    except OSError as error:
        raise ExportError(
            f"cannot write {error.filename or target}: {error.strerror or error}; make it writable, or free disk space"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def folder_names(stages: Sequence[str]) -> list[str]:
    """A folder per stage, which is its adapter's name, too: what paths, servers and torch take.

    Raises ExportError if two stages would share one."""
    names = [re.sub(r"[^A-Za-z0-9_-]", "_", stage) for stage in stages]
    names = [f"{name}_" if name == "base" or hasattr(torch.nn.ModuleDict(), name) else name for name in names]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ExportError(
                f"the stages {stages[names.index(name)]!r} and {stages[index]!r} would both go to the folder {name}; "
                "export them one at a time with --stages"
            )
    return names


def _replace(target: Path, partial: Path) -> None:
    target.mkdir(exist_ok=True)
    if (target / RECORD).is_file():
        entries = json.loads((target / RECORD).read_text(encoding="utf-8"))["entries"]
        for name in (RECORD, *entries):
            _remove(target / Path(name).name)
    for entry in sorted(partial.iterdir(), key=lambda path: path.name == RECORD):
        os.replace(entry, target / entry.name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
