"""Who does the work of a sweep: this machine, or a Ray cluster. Another one is one more row of EXECUTORS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from nograd.errors import ConfigError, unknown_name
from nograd.study.local import LocalExecutor
from nograd.study.ray_executor import RayExecutor
from nograd.study.work import Build, Job, OnEvent


class Executor(Protocol):
    """Does jobs."""

    def execute(self, jobs: Sequence[Job], build: Build, on_event: OnEvent) -> None:
        """Do all jobs; call on_event, in this thread, for every step and for the end of each.

        A job whose worker dies is done again from its directory. An interrupt (Ctrl-C) stops all workers and
        passes on. build must be importable by name where the work is done."""
        ...


@dataclass(frozen=True)
class ExecutorOptions:
    """workers: runs at a time on this machine. retries: further attempts after a worker died.

    For ray: address: of a running cluster, None starts one here; cpus, gpus: what a run takes; copied: the
    workers do not see the sweep directory, so files are sent to and fro. Raises ConfigError."""

    workers: int = 1
    retries: int = 2
    address: str | None = None
    cpus: float = 1
    gpus: float = 0
    copied: bool = False

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"workers must be 1 or more, got {self.workers}")
        if self.retries < 0:
            raise ConfigError(f"retries must be 0 or more, got {self.retries}")
        if self.cpus < 0 or self.gpus < 0:
            raise ConfigError(f"a run takes 0 or more CPUs and GPUs, got {self.cpus} and {self.gpus}")


EXECUTORS: dict[str, Callable[[ExecutorOptions], Executor]] = {
    "local": lambda options: LocalExecutor(options.workers, options.retries),
    "ray": lambda options: RayExecutor(
        address=options.address,
        workers=options.workers,
        cpus=options.cpus,
        gpus=options.gpus,
        retries=options.retries,
        copied=options.copied,
    ),
}


def make_executor(name: str = "local", options: ExecutorOptions | None = None) -> Executor:
    """The executor of this name. Raises ConfigError for an unknown one."""
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    return EXECUTORS[name](options or ExecutorOptions())
