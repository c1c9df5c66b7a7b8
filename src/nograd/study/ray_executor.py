"""The Ray executor: each cell is a task of a Ray cluster (extra `ray`). Nothing but this file knows Ray."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from socket import create_connection
from tempfile import TemporaryDirectory
from typing import Any

from nograd.errors import ConfigError
from nograd.study.copying import Changes, Files, restore, snapshot
from nograd.study.work import Build, Event, Job, OnEvent, attempt

POLL = 0.2
"""Seconds between two looks at the mailbox."""

REACHABLE = 10.0
"""Seconds that a cluster's address has to answer."""


@dataclass(frozen=True)
class RayExecutor:
    """address: of a running cluster; None starts one on this machine for `workers` runs at a time. cpus,
    gpus: what a run takes. retries: further attempts after a worker died. copied: send run directories to
    and fro instead of sharing the file system."""

    address: str | None = None
    workers: int = 1
    cpus: float = 1
    gpus: float = 0
    retries: int = 2
    copied: bool = False

    def execute(self, jobs: Sequence[Job], build: Build, on_event: OnEvent) -> None:
        """See `executors.Executor`. Raises ConfigError if Ray is missing, cannot be reached, or has no node
        that a run fits on."""
        ray = _import_ray()
        with self._cluster(ray):
            self._check_resources(ray)
            _Tasks(ray, self, build, on_event).work(jobs)

    @contextmanager
    def _cluster(self, ray: Any) -> Iterator[None]:
        """A connection for as long as the context lasts; one that the caller already has is left alone."""
        if ray.is_initialized():
            yield
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            self._check_address()
            ray.init(**self._start_options())
        except (OSError, ValueError, RuntimeError) as error:
            where = f"the Ray cluster at {self.address!r}" if self.address else "a local Ray cluster"
            raise ConfigError(f"cannot reach or start {where} ({error}); check `ray status`") from error
        try:
            yield
        finally:
            ray.shutdown()

    def _check_address(self) -> None:
        """Ray itself waits for minutes where nobody listens."""
        host, colon, port = (self.address or "").removeprefix("ray://").rpartition(":")
        if colon and port.isdigit():
            create_connection((host, int(port)), timeout=REACHABLE).close()

    def _start_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if self.address is not None:
            return options | {"address": self.address}
        room = max(1, math.ceil(self.workers * self.cpus))
        return options | {"address": "local", "num_cpus": room, "include_dashboard": False}

    def _check_resources(self, ray: Any) -> None:
        """A task that fits on no node would wait for ever."""
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if not any(node.get("CPU", 0) >= self.cpus and node.get("GPU", 0) >= self.gpus for node in nodes):
            raise ConfigError(
                f"no node of the Ray cluster has the {self.cpus:g} CPUs and {self.gpus:g} GPUs that a run is "
                f"to take; ask for less per run, or add such a node"
            )


class _Mailbox:
    """A Ray actor that keeps what the tasks report until the driver takes it."""

    def __init__(self) -> None:
        self._mail: list[tuple[Event, Files]] = []

    def post(self, event: Event, files: Files) -> None:
        self._mail.append((event, files))

    def take(self) -> list[tuple[Event, Files]]:
        mail, self._mail = self._mail, []
        return mail


class _Tasks:
    """The tasks of one sweep, and who is still running."""

    def __init__(self, ray: Any, options: RayExecutor, build: Build, on_event: OnEvent) -> None:
        self._ray = ray
        self._options = options
        self._build = build
        self._on_event = on_event
        self._mailbox = ray.remote(num_cpus=0)(_Mailbox).remote()
        self._task = ray.remote(num_cpus=options.cpus, num_gpus=options.gpus, max_retries=0)(_do)
        self._running: dict[Any, Job] = {}
        self._paths: dict[str, Path] = {}
        self._deaths: dict[str, int] = {}

    def work(self, jobs: Sequence[Job]) -> None:
        try:
            for job in jobs:
                self._paths[job.cell.name] = job.path
                self._submit(job)
            while self._running:
                finished, _ = self._ray.wait(list(self._running), timeout=POLL)
                self._read_mail()
                for task in finished:
                    self._finish(task, self._running.pop(task))
        finally:
            for task in self._running:
                self._ray.cancel(task, force=True)
            self._ray.kill(self._mailbox)

    def _submit(self, job: Job) -> None:
        files = _own_and_source(job) if self._options.copied else None
        self._running[self._task.remote(job, self._build, self._mailbox, files)] = job

    def _read_mail(self) -> None:
        for event, files in self._ray.get(self._mailbox.take.remote()):
            restore(self._paths[event.job], files)
            self._on_event(event)

    def _finish(self, task: Any, job: Job) -> None:
        """A task that ended by itself has reported so; one whose worker died is submitted again."""
        try:
            self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            self._bury(job, str(error).strip().partition("\n")[0] or type(error).__name__)

    def _bury(self, job: Job, reason: str) -> None:
        name = job.cell.name
        self._deaths[name] = self._deaths.get(name, 0) + 1
        if self._deaths[name] <= self._options.retries:
            self._on_event(Event(name, "retry", text=f"its Ray worker died ({reason})"))
            self._submit(job)
        else:
            end = f"its Ray worker died {self._deaths[name]} times ({reason})"
            self._on_event(Event(name, "failed", text=f"{end}; see Ray's logs, then resume the sweep"))


def _do(job: Job, build: Build, mailbox: Any, files: tuple[Files, Files] | None) -> None:
    """The body of a task. files: content of the job's directory and of the run that it replays, where the
    worker does not see them."""
    ray = _import_ray()
    if files is None:
        attempt(job, build, lambda event: ray.get(mailbox.post.remote(event, {})))
        return
    with TemporaryDirectory(prefix="nograd-") as folder:
        here = _unpacked(job, Path(folder), files)
        changes = Changes(here.path)
        attempt(here, build, lambda event: ray.get(mailbox.post.remote(event, changes.take())))


def _own_and_source(job: Job) -> tuple[Files, Files]:
    return snapshot(job.path), snapshot(job.source / job.cell.folder) if job.source else {}


def _unpacked(job: Job, folder: Path, files: tuple[Files, Files]) -> Job:
    own, source = folder / "run", folder / "source"
    restore(own, files[0])
    restore(source / job.cell.folder, files[1])
    return replace(job, path=own, source=source if job.source else None)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "the ray executor needs the package ray; install nograd[ray], or use the local executor"
        ) from error
    return ray
