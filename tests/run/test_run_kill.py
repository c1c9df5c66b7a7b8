"""A run that is killed anywhere resumes to the same bytes as one that is left alone."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from run_bytes import run_bytes
from vector_world import VectorWorld, vector_config

from nograd.errors import RunError
from nograd.run.generation import read_generations
from nograd.run.lock import locked
from nograd.run.loop import run

WORKER = Path(__file__).with_name("run_worker.py")
ARMS = ["bandit", "burst:module=caller,spread=true"]


def killed_worker(directory: Path, settings: list[str], lines: int, delay: float) -> bool:
    """Start a real process and SIGKILL it that long after it has printed so many lines; whether it died of
    that (it may have been done)."""
    command = [sys.executable, str(WORKER), str(directory), *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for _ in range(lines):
            worker.stdout.readline()
        time.sleep(delay)
        worker.send_signal(signal.SIGKILL)
        return worker.wait() == -signal.SIGKILL


@pytest.mark.parametrize("arm", ARMS)
def test_sigkill_at_random_points(arm: str, tmp_path: Path) -> None:
    settings = ["search.generations=30", f"search.arm={arm}"]
    config = vector_config(*settings)
    start = time.perf_counter()
    run(config, VectorWorld(config.seed), tmp_path / "undisturbed")
    generation = (time.perf_counter() - start) / 30

    (tmp_path / "killed").mkdir()
    draws = random.Random(arm)
    reached = []
    killed = 0
    for _ in range(8):
        lines, delay = draws.randint(1, 5), draws.uniform(0, 2 * generation)
        killed += killed_worker(tmp_path / "killed", settings, lines, delay)
        with locked(tmp_path / "killed"):  # at once: nothing that outlives the process may keep it
            reached.append(len(read_generations(tmp_path / "killed")))
    run(config, VectorWorld(config.seed), tmp_path / "killed", resume=True)

    assert killed >= 4
    assert len(set(reached)) >= 3
    assert reached == sorted(reached)
    assert run_bytes(tmp_path / "killed") == run_bytes(tmp_path / "undisturbed")


def in_child(work: Callable[[], None]) -> int:
    """Exit status of a forked process that does the work; it ends without any clean-up, as a killed one."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_death_before_every_single_disk_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = vector_config("search.generations=2")
    run(config, VectorWorld(1), tmp_path / "undisturbed")
    expected = run_bytes(tmp_path / "undisturbed")
    real = {name: getattr(os, name) for name in ("fsync", "replace")}

    def run_until_operation(number: int, directory: Path) -> None:
        left = number

        def dying(name: str) -> Callable[..., None]:
            def operation(*arguments: object) -> None:
                nonlocal left
                if left == 0:
                    os._exit(9)
                left -= 1
                real[name](*arguments)

            return operation

        for name in real:
            monkeypatch.setattr(os, name, dying(name))
        run(config, VectorWorld(1), directory)
        os._exit(0)

    number = 0
    while True:
        directory = tmp_path / str(number)
        status = in_child(lambda n=number, d=directory: run_until_operation(n, d))  # type: ignore[misc]
        if status == 0:
            break
        assert status == 9
        run(config, VectorWorld(1), directory, resume=True)
        assert run_bytes(directory) == expected, f"death before disk operation {number}"
        number += 1
    assert number > 20


def test_a_full_disk_is_one_sentence_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = vector_config("search.generations=3")
    run(config, VectorWorld(1), tmp_path / "undisturbed")
    real = os.fsync
    for number in (0, 5, 12, 19):
        calls = iter(range(1000))

        def full(descriptor: int, number: int = number, calls: object = calls) -> None:
            if next(calls) == number:  # type: ignore[call-overload]
                raise OSError(errno.ENOSPC, "No space left on device")
            real(descriptor)

        directory = tmp_path / str(number)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(RunError, match="No space left on device"):
                run(config, VectorWorld(1), directory)
        assert not list(directory.rglob("*.tmp"))
        run(config, VectorWorld(1), directory, resume=True)
        assert run_bytes(directory) == run_bytes(tmp_path / "undisturbed")
