"""The Ray executor on a real local cluster: a worker is killed mid-cell, directories are shared or copied."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import study_world
import vector_world
from run_bytes import run_bytes
from study_world import DeadlyBuilder, build, new_sweep

from nograd.errors import ConfigError
from nograd.study.executors import ExecutorOptions, make_executor
from nograd.study.plan_file import load_plan
from nograd.study.progress import Progress
from nograd.study.scaling import Scaling
from nograd.study.sweep import run_sweep
from nograd.study.sweep_directory import Sweep, create_sweep

pytestmark = pytest.mark.ray


def test_a_cluster_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    executor = make_executor("ray", ExecutorOptions(address="127.0.0.1:1"))
    with pytest.raises(ConfigError, match=r"cannot reach or start the Ray cluster at '127.0.0.1:1'"):
        run_sweep(new_sweep(tmp_path), executor, build=build)


def test_it_starts_and_stops_a_cluster_of_its_own(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    scaling = Scaling(seeds=(1,), generations=1)
    sweep = create_sweep(tmp_path / "sweep", load_plan("prestudy"), scaling)
    outcome = run_sweep(sweep, make_executor("ray", ExecutorOptions(workers=2)))
    assert outcome.finished, outcome.failed
    assert not ray.is_initialized()


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One local cluster for all tests; worker processes get the test modules by value."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        for module in (study_world, vector_world):
            ray.cloudpickle.register_pickle_by_value(module)
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def undisturbed(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Sweep:  # noqa: ARG001
    sweep = new_sweep(tmp_path_factory.mktemp("undisturbed"), generations=6)
    assert run_sweep(sweep, build=build).finished
    return sweep


def assert_same_runs(sweep: Sweep, other: Sweep) -> None:
    for cell in sweep.cells:
        assert run_bytes(sweep.path(cell)) == run_bytes(other.path(cell)), cell.name


@pytest.mark.parametrize("copied", [False, True])
def test_a_killed_worker_s_cell_resumes_to_the_same_bytes(copied: bool, undisturbed: Sweep, tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path, generations=6)
    executor = make_executor("ray", ExecutorOptions(copied=copied))
    seen: list[Progress] = []
    deadly = DeadlyBuilder(tmp_path / "marks", times=2)
    outcome = run_sweep(sweep, executor, build=deadly, on_progress=seen.append)
    assert outcome.finished, outcome.failed
    events = [progress.event for progress in seen if progress.event is not None]
    assert sum(event.kind == "retry" for event in events) == 2
    assert sum(event.kind == "done" for event in events) == 6
    retried = {event.job for event in events if event.kind == "retry"}
    for job in retried:
        steps = [event.step for event in events if event.job == job and event.kind == "step"]
        assert steps == list(range(6)), "it went on where it stood, and did nothing twice"
    assert_same_runs(sweep, undisturbed)


def test_a_cell_that_always_dies_is_given_up(cluster: None, tmp_path: Path) -> None:  # noqa: ARG001
    sweep = new_sweep(tmp_path, seeds="1", generations=6)
    executor = make_executor("ray", ExecutorOptions(retries=0))
    outcome = run_sweep(sweep, executor, build=DeadlyBuilder(tmp_path / "marks", times=1000))
    assert len(outcome.failed) == 3
    assert all("died 1 times" in reason for reason in outcome.failed.values())


def test_a_run_that_fits_nowhere_is_an_error(cluster: None, tmp_path: Path) -> None:  # noqa: ARG001
    executor = make_executor("ray", ExecutorOptions(gpus=99))
    with pytest.raises(ConfigError, match="no node of the Ray cluster has the 1 CPUs and 99 GPUs"):
        run_sweep(new_sweep(tmp_path), executor, build=build)


def test_without_ray_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"install nograd\[ray\]"):
        run_sweep(new_sweep(tmp_path), make_executor("ray"), build=build)
