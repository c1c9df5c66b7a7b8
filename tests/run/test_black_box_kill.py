"""A black box that is killed anywhere, with failures and several calls under way, resumes to the same bytes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from black_box_worker import tune
from run_bytes import run_bytes

import nograd
from nograd.run.generation import read_generations

WORKER = Path(__file__).with_name("black_box_worker.py")


def killed_worker(directory: Path, lines: int, delay: float) -> bool:
    """Start a process and SIGKILL it that long after it has printed so many lines; whether it died of that."""
    with subprocess.Popen(
        [sys.executable, str(WORKER), str(directory)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as worker:
        assert worker.stdout is not None
        for _ in range(lines):
            worker.stdout.readline()
        time.sleep(delay)
        worker.send_signal(signal.SIGKILL)
        return worker.wait() == -signal.SIGKILL


def test_sigkill_at_random_points(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="evaluations failed"):
        tune(tmp_path / "undisturbed", resume=False, concurrency=1, transient=0)
    draws = random.Random(7)
    reached, killed = [], 0
    for _ in range(4):
        killed += killed_worker(tmp_path / "killed", draws.randint(2, 5), draws.uniform(0, 0.03))
        reached.append(len(read_generations(tmp_path / "killed")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tune(tmp_path / "killed", resume=True, concurrency=8)

    assert killed >= 3
    assert len(set(reached)) >= 3
    assert any(record.dropped for record in nograd.load_run(tmp_path / "killed").generations)
    assert run_bytes(tmp_path / "killed") == run_bytes(tmp_path / "undisturbed")
