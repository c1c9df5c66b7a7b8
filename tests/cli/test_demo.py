"""nograd demo, and a killed run, on a tiny model; a run of the embedded model end to end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_command import Command

from nograd.cli.output import SUMMARY_KEYS
from nograd.run.load import load_run

SMALL = ["--set", "tasks.batch=2", "--set", "search.pairs=1", "--set", "subspace.dim=2"]
FLOAT32 = ["--set", "model.dtype=float32"]


def test_demo_shows_before_and_after_and_goes_on_where_it_stopped(
    nograd: Command, tiny_model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "demo"
    arguments = ["demo", "--out", out, "--generations", 1, "--model", tiny_model, *SMALL, *FLOAT32]
    outcome = nograd(*arguments)
    assert outcome.status == 0
    assert "32 tasks of in_house and 64 tasks of in_house_heldout" in outcome.out
    rows = {line.split("  ")[0]: line.split()[-4:] for line in outcome.out.splitlines() if line}
    for name in ("success", "right tool", "call ok", "lost at the selector", "lost at the synthesizer"):
        assert len([float(cell) for cell in rows[name]]) == 4
    lost = [
        float(rows[f"lost at the {stage}"][0]) for stage in ("planner", "selector", "caller", "synthesizer")
    ]
    assert float(rows["success"][0]) + sum(lost) == pytest.approx(1, abs=0.03), "every failure is somebody's"
    assert (out / "learning-curve.png").read_bytes().startswith(b"\x89PNG")
    assert str(out / "learning-curve.png") in outcome.out.replace("\n", "")

    again = nograd(*arguments)
    assert again.status == 0
    assert "generation 1/1" not in again.err, "the finished run is not run again"
    assert again.out.partition("32 tasks")[2] == outcome.out.partition("32 tasks")[2]


def test_a_killed_run_resumes_to_the_same_coefficients(
    nograd: Command, tiny_model: Path, tmp_path: Path
) -> None:
    arguments = ["--model", str(tiny_model), "--generations", "4", *SMALL, *FLOAT32, "--out"]
    assert nograd("run", *arguments, tmp_path / "whole").status == 0
    code = "import sys; from nograd.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "run", *arguments, str(tmp_path / "killed")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("generation 2/4"):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    outcome = nograd("run", "--resume", tmp_path / "killed")
    assert outcome.status == 0
    whole, killed = load_run(tmp_path / "whole"), load_run(tmp_path / "killed")
    assert np.array_equal(whole.theta, killed.theta)
    assert whole.trajectories("newest") == killed.trajectories("newest")


@pytest.mark.real
def test_the_embedded_model_from_run_to_answer(nograd: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    small = ["--generations", 2, "--pairs", 1, "--set", "tasks.batch=4"]
    outcome = nograd("run", *small, "--arm", "lock:module=caller", "--out", out, "--json")
    assert outcome.status == 0
    record = outcome.last_json
    assert set(record) == set(SUMMARY_KEYS)
    assert 0 < record["requests_computed"] < record["requests_asked"]
    assert 0 < record["peak_memory_bytes"] < 3e9
    assert "smollm2-135m (" in nograd("show", out).out
    answer = nograd("ask", out, "What is 2 plus 3?")
    assert answer.status == 0
    untouched = answer.out.partition("tuned, 2 generations")[0]
    assert "\n  caller       {" in untouched
    assert "→ 5" in untouched
