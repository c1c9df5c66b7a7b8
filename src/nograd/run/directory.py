"""A run directory: started or resumed under its lock, and one generation committed at a time.

Order of a commit: checkpoint, trajectories, then the generation's line. The line makes the generation count;
whatever a killed process left behind without its line is written again with the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nograd.errors import RunError
from nograd.run import checkpoint, layout
from nograd.run.config import RunConfig
from nograd.run.config_source import to_toml
from nograd.run.files import append_line, disk_errors, drop_torn_tail, write_atomic
from nograd.run.generation import GenerationRecord, encode, read_generations
from nograd.run.lock import locked
from nograd.run.resume import check_config, check_identity, warn_of_surroundings
from nograd.run.strict_json import dumps


class RunDirectory:
    """A run that this process may write. Made by `open_run`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._generations = read_generations(root)

    @property
    def generations(self) -> Sequence[GenerationRecord]:
        """The committed generations."""
        return tuple(self._generations)

    def newest_state(self) -> checkpoint.Arrays | None:
        """The search state after the last committed generation, None at the start. Raises RunError if any
        checkpoint is missing or damaged."""
        arrays = None
        for record in self._generations:
            arrays = checkpoint.read(layout.checkpoint(self.root, record.generation), record.checkpoint)
        return arrays

    def commit(
        self,
        record: GenerationRecord,
        state: checkpoint.Arrays,
        trajectories: Sequence[Mapping[str, Any]],
    ) -> GenerationRecord:
        """Write a generation: the state after it and the center's trajectories in it. Returns the record as
        written. Raises RunError if the disk refuses."""
        data = checkpoint.encode(state)
        record = record.with_checkpoint(checkpoint.digest(data))
        lines = b"".join(dumps({"generation": record.generation, **row}) + b"\n" for row in trajectories)
        with disk_errors():
            write_atomic(layout.checkpoint(self.root, record.generation), data)
            if record.generation == 0:
                write_atomic(layout.trajectories(self.root, "first"), lines)
            write_atomic(layout.trajectories(self.root, "newest"), lines)
            append_line(self.root / layout.GENERATIONS, encode(record))
        self._generations.append(record)
        return record


@contextmanager
def open_run(path: Path, config: RunConfig, now: Mapping[str, Any], resume: bool) -> Iterator[RunDirectory]:
    """Start a run, or go on with one if resume, for as long as the context lasts.

    now: this process's `run.environment.environment`, taken before: it starts git, and a process started
    under the lock may hold it for a moment longer than its killed parent.
    Raises RunError if the directory is in use, holds a run and resume is false, or holds a run of another
    configuration or identity (see `run.resume`), or is damaged."""
    with disk_errors():
        path.mkdir(parents=True, exist_ok=True)
    with locked(path):
        if not layout.holds_run(path):
            _start(path, config, now)
        elif resume:
            _go_on(path, config, now)
        else:
            raise RunError(f"{path} already holds a run; resume it or choose another directory")
        yield RunDirectory(path)


def _start(root: Path, config: RunConfig, now: Mapping[str, Any]) -> None:
    with disk_errors():
        write_atomic(root / layout.ENVIRONMENT, dumps(now) + b"\n")
        write_atomic(root / layout.CONFIG, to_toml(config).encode())


def _go_on(root: Path, config: RunConfig, now: Mapping[str, Any]) -> None:
    check_config(root, config)
    check_identity(root, now["identity"])
    with disk_errors():
        for name in (layout.GENERATIONS, layout.RESUMED):
            drop_torn_tail(root / name)
    done = len(read_generations(root))
    if done < config.search.generations:
        changed = warn_of_surroundings(root, now)
        time = datetime.now(UTC).isoformat(timespec="seconds")
        with disk_errors():
            line = {"after_generations": done, "at": time, "changed": changed}
            append_line(root / layout.RESUMED, dumps(line))
