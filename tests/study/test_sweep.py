"""Sweeps on real run directories: resumed, damaged, killed, interrupted; final bytes equal an undisturbed run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from run_bytes import run_bytes
from study_world import DeadlyBuilder, again, build, new_sweep, write_plan

from nograd.errors import ConfigError, RunError
from nograd.run.config import RunConfig
from nograd.run.evaluators import Built
from nograd.run.lock import locked
from nograd.study.cell_state import inspect, unfinished
from nograd.study.contrasts import arm_rows
from nograd.study.executors import ExecutorOptions, make_executor
from nograd.study.ledger import score
from nograd.study.local import LocalExecutor
from nograd.study.plan_file import load_plan
from nograd.study.progress import Progress
from nograd.study.results import collect
from nograd.study.scaling import Scaling
from nograd.study.sweep import FAILURES, SweepInterruptedError, run_sweep
from nograd.study.sweep_directory import SWEEP, Sweep, create_sweep, find_sweeps, open_sweep
from nograd.study.work import Build, Event, Job, OnEvent
from nograd.synthetic import REGIMES

SCRIPT = Path(__file__).with_name("sweep_script.py")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Recorded in environment.json, so it must be the same in all processes, and for `undisturbed`, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def undisturbed(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Sweep:  # noqa: ARG001
    sweep = new_sweep(tmp_path_factory.mktemp("undisturbed"), generations=6)
    assert run_sweep(sweep, build=build).finished
    return sweep


def assert_same_runs(sweep: Sweep, other: Sweep) -> None:
    for cell in sweep.cells:
        assert run_bytes(sweep.path(cell)) == run_bytes(other.path(cell)), cell.name


def kinds(sweep: Sweep) -> dict[str, str]:
    return {state.cell.name: state.kind for state in inspect(sweep)}


def test_a_sweep_holds_one_run_per_arm_and_seed(undisturbed: Sweep) -> None:
    assert set(kinds(undisturbed)) == {
        f"{arm}/seed-000{seed}" for arm in ("uniform", "hard", "locked") for seed in (1, 2)
    }
    assert set(kinds(undisturbed).values()) == {"complete"}
    assert find_sweeps(undisturbed.root.parent) == [undisturbed.root]


class Stops:
    """An executor that is interrupted after some steps, as by Ctrl-C."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def execute(self, jobs: Sequence[Job], build: Build, on_event: OnEvent) -> None:
        def counting(event: Event) -> None:
            on_event(event)
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

        LocalExecutor().execute(jobs, build, counting)


def test_interrupted_anywhere_it_goes_on_to_the_same_bytes(undisturbed: Sweep, tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path, generations=6)
    for steps in (1, 8, 9, 1):
        with pytest.raises(SweepInterruptedError, match=r"cells complete; nothing is lost, resume"):
            run_sweep(again(sweep), Stops(steps), build=build)
    assert set(kinds(sweep).values()) == {"complete", "half-finished", "missing"}
    assert "is half-finished (" in " ".join(unfinished(inspect(sweep)))
    assert run_sweep(again(sweep), build=build).finished
    assert_same_runs(sweep, undisturbed)


def test_workers_give_the_same_bytes(undisturbed: Sweep, tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path, generations=6)
    executor = make_executor("local", ExecutorOptions(workers=2))
    assert run_sweep(sweep, executor, build=build).finished
    assert_same_runs(sweep, undisturbed)


def test_a_killed_worker_s_cell_resumes(undisturbed: Sweep, tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path, generations=6)
    seen: list[Progress] = []
    deadly = DeadlyBuilder(tmp_path / "marks", times=2)
    outcome = run_sweep(sweep, LocalExecutor(workers=2), build=deadly, on_progress=seen.append)
    assert outcome.finished
    retries = [progress.event for progress in seen if progress.event and progress.event.kind == "retry"]
    assert len(retries) == 2
    assert "exit status -9" in retries[0].text
    assert_same_runs(sweep, undisturbed)


def test_a_cell_that_always_dies_is_given_up_and_the_others_done(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path, generations=6)
    deadly = DeadlyBuilder(tmp_path / "marks", times=1000)
    outcome = run_sweep(sweep, LocalExecutor(workers=2, retries=1), build=deadly)
    assert set(outcome.failed) == {f"{arm}/seed-0001" for arm in ("uniform", "hard", "locked")}
    assert len(outcome.complete) == 3
    assert "2 times; look for a lack of memory" in outcome.failed["hard/seed-0001"]
    assert kinds(sweep)["hard/seed-0001"] == "half-finished"


def test_a_failing_cell_is_written_down_and_stops_no_other(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)

    def failing(config: RunConfig) -> Built:
        if config.search.clip == 0.1:
            raise ZeroDivisionError("by zero")
        return build(config)

    seen: list[Progress] = []
    outcome = run_sweep(sweep, build=failing, on_progress=seen.append)
    assert (seen[-1].cells, seen[-1].failed, seen[-1].seconds_left) == ((4, 6), 2, 0.0)
    assert set(outcome.failed.values()) == {"ZeroDivisionError: by zero"}
    assert len(outcome.complete) == 4
    written = (sweep.root / FAILURES).read_text(encoding="utf-8")
    assert written.count("locked/seed-000") == 2
    assert "Traceback" in written
    assert run_sweep(again(sweep), build=build).finished


def test_damage_is_said_and_left_alone(undisturbed: Sweep, tmp_path: Path) -> None:
    shutil.copytree(undisturbed.root, tmp_path / "sweep")
    sweep = open_sweep(tmp_path / "sweep")
    torn = sweep.root / "hard/seed-0001/checkpoints/00002.safetensors"
    torn.write_bytes(torn.read_bytes()[:-1])
    foreign = sweep.root / "uniform/seed-0002"
    shutil.rmtree(foreign)
    shutil.copytree(sweep.root / "uniform/seed-0001", foreign)
    shutil.rmtree(sweep.root / "locked/seed-0001")
    assert kinds(sweep) == {
        "uniform/seed-0001": "complete",
        "hard/seed-0001": "damaged",
        "locked/seed-0001": "missing",
        "uniform/seed-0002": "damaged",
        "hard/seed-0002": "complete",
        "locked/seed-0002": "complete",
    }
    outcome = run_sweep(sweep, build=build)
    assert set(outcome.failed) == {"hard/seed-0001", "uniform/seed-0002"}
    assert "is damaged (sha256" in outcome.failed["hard/seed-0001"]
    assert "seed = 1 where the plan has 2" in outcome.failed["uniform/seed-0002"]
    assert kinds(sweep)["locked/seed-0001"] == "complete"


def test_arms_of_a_seed_share_one_evaluator(tmp_path: Path) -> None:
    built: list[int] = []

    def counting(config: RunConfig) -> Built:
        built.append(config.seed)
        return build(config)

    sweep = new_sweep(tmp_path)
    assert run_sweep(sweep, build=counting).finished
    assert built == [1, 1, 2, 2], "uniform and hard differ in the arm only, locked has another clip"


def test_progress_counts_rollouts_and_estimates_the_rest(tmp_path: Path) -> None:
    seen: list[Progress] = []
    sweep = new_sweep(tmp_path)
    with pytest.raises(SweepInterruptedError):
        run_sweep(sweep, Stops(6), build=build)
    run_sweep(again(sweep), build=build, on_progress=seen.append)
    per_step = 9 * 16
    assert seen[0].rollouts == (5 * per_step, 24 * per_step)
    assert (seen[0].cells, seen[0].seconds_left) == ((1, 6), None)
    assert seen[-1].rollouts == (24 * per_step, 24 * per_step)
    assert (seen[-1].cells, seen[-1].failed, seen[-1].seconds_left) == ((6, 6), 0, 0.0)
    steps = [progress.seconds_left for progress in seen[1:-1]]
    assert all(left is not None and left >= 0 for left in steps)


def is_gone(group: int, patience: float) -> bool:
    """Whether all processes of a group end in time."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("steps", [1, 5])
def test_ctrl_c_stops_real_workers(steps: int, undisturbed: Sweep, tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path, generations=6)
    command = [sys.executable, str(SCRIPT), str(sweep.root), "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        for _ in range(steps):
            assert process.stdout.readline() == "step\n"
        os.killpg(process.pid, signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert "cells complete; nothing is lost, resume the sweep" in rest
    assert errors == ""
    assert is_gone(process.pid, patience=20), "a worker is left"
    assert run_sweep(again(sweep), build=build).finished
    assert_same_runs(sweep, undisturbed)


def test_the_prestudy_runs_as_it_comes(tmp_path: Path) -> None:
    scaling = Scaling(seeds=(1,), generations=2)
    sweep = create_sweep(tmp_path / "sweep", load_plan("prestudy"), scaling)
    outcome = run_sweep(sweep, make_executor("local", ExecutorOptions(workers=2)))
    assert outcome.finished, outcome.failed
    rows = arm_rows(collect([sweep]), sweep.file.plan)
    assert [row.label for row in rows if row.contrast is None] == [f"{regime}.uniform" for regime in REGIMES]
    assert {row.outcome for row in score([sweep], sweep.file)} <= {"hit", "miss"}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    with locked(sweep.root), pytest.raises(RunError, match="is in use by process"):
        run_sweep(sweep, build=build)


def test_a_directory_begins_one_sweep_only(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    with pytest.raises(RunError, match="already holds a sweep; resume it"):
        create_sweep(sweep.root, sweep.file)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"not empty \(it holds 'thesis.tex'\)"):
        create_sweep(tmp_path / "other", sweep.file)
    with pytest.raises(RunError, match="holds no sweep; check the path"):
        open_sweep(tmp_path / "other")


def test_a_sweep_keeps_its_plan(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    write_plan(tmp_path, seeds="1-9")
    assert len(again(sweep).cells) == 6
    plan = sweep.root / "plan.toml"
    plan.write_text(plan.read_text(encoding="utf-8").replace('"hard"', '"soft"'), encoding="utf-8")
    with pytest.raises(RunError, match="was edited after the sweep began"):
        open_sweep(sweep.root)


def test_a_damaged_sweep_record_is_an_error(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    (sweep.root / SWEEP).write_bytes(b"{")
    with pytest.raises(RunError, match="cannot be read"):
        open_sweep(sweep.root)


def test_a_plan_that_now_reads_otherwise_is_an_error(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    record = sweep.root / SWEEP
    digest = sweep.record["cells"]["hard/seed-0001"].encode()
    record.write_bytes(record.read_bytes().replace(digest, b"0" * 64))
    with pytest.raises(RunError, match=r"reads the plan of .* as other runs than the version that started it"):
        open_sweep(sweep.root)


def test_scaling_is_kept(tmp_path: Path) -> None:
    file = write_plan(tmp_path)
    scaling = Scaling(model="other", seeds=(5,), generations=2, settings={"execution": {"threads": 1}})
    sweep = create_sweep(tmp_path / "sweep", file, scaling)
    assert open_sweep(sweep.root).scaling == scaling
    assert run_sweep(again(sweep), build=build).finished
    assert set(kinds(sweep)) == {f"{arm}/seed-0005" for arm in ("uniform", "hard", "locked")}
    assert all(state.planned == 2 for state in inspect(sweep))


def test_executors_are_checked() -> None:
    with pytest.raises(ConfigError, match="unknown executor 'lokal'; did you mean 'local'"):
        make_executor("lokal")
    with pytest.raises(ConfigError, match="workers must be 1 or more, got 0"):
        ExecutorOptions(workers=0)
