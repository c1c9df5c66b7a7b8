"""The LLM agent from a configuration, on a tiny random model: built, run, killed and resumed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from run_bytes import run_bytes

from nograd.agent.four_stage import STAGES
from nograd.errors import ConfigError
from nograd.llm.fingerprint import fingerprint
from nograd.run.build_agent import build_agent
from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.run.generation import read_generations
from nograd.run.start import run_config
from tiny_models import save_tiny_chat

WORKER = Path(__file__).with_name("agent_worker.py")
STAGE_LIMITS = [
    f"agent.token_limits.{stage}={limit}" for stage, limit in zip(STAGES, (5, 6, 7, 5), strict=True)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOGRAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def settings(folder: Path, *more: str) -> list[str]:
    return [
        f"model.spec={folder}",
        "model.dtype=float32",
        "execution.device=cpu",
        "execution.threads=1",
        "tasks.batch=3",
        "subspace.dim=4",
        "search.generations=3",
        *STAGE_LIMITS,
        *more,
    ]


def config(folder: Path, *more: str) -> RunConfig:
    return load_config(None, settings(folder, *more))


def test_what_is_built(folder: Path) -> None:
    built = build_agent(config(folder))
    assert (tuple(built.evaluator.modules), built.evaluator.dim) == (STAGES, 4)
    assert built.machine == {"device": "cpu", "threads": 1}
    tasks = built.facts["tasks"]
    assert dict(built.facts) == {
        "model": "tiny",
        "revision": None,
        "fingerprint": fingerprint([folder / "model.safetensors"]),
        "dtype": "float32",
        "directions": built.evaluator.scheduler.engine.perturbation.subspace.digest(),
        "tasks": tasks,
    }
    heldout = build_agent(config(folder, "tasks.family=in_house_heldout"))
    assert heldout.facts["tasks"] != tasks
    per_layer = build_agent(config(folder, "subspace.parameterisation=per_layer"))
    assert per_layer.evaluator.dim == 8


def test_mistakes_are_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"tasks.batch = 33, but in_house has 32 tasks; ask for at most"):
        build_agent(config(folder, "tasks.batch=33"))
    with pytest.raises(ConfigError, match=r"subspace.dim = 13 for 4 modules needs rank 52.* fits is 12"):
        build_agent(config(folder, "subspace.dim=13"))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_those_asked_for(threads: int) -> None:
    """In a process of its own: the first start of the kernels' threads used to change torch's number."""
    program = (
        "import torch, numba; from nograd.run.build_agent import set_threads; "
        f"set_threads({threads}); print(torch.get_num_threads(), numba.get_num_threads()); "
        "set_threads(None); print(torch.get_num_threads(), numba.get_num_threads())"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stdout == f"{threads} {threads}\n" * 2, done.stderr


@pytest.mark.parametrize("basis", ["svd", "random", "matched"])
def test_every_setting_of_the_subspace_reaches_the_model(basis: str, folder: Path) -> None:
    thetas = np.random.default_rng(0).normal(size=(1, 4, 4)).astype(np.float32)
    found = set()
    for more in ([], ["subspace.injection=0.5"], ["subspace.binding=shuffled"]):
        evaluator = build_agent(config(folder, f"subspace.basis={basis}", *more)).evaluator
        found.add(evaluator.evaluate(0, thetas).evaluations[0].fitness)
    assert len(found) == 3


def test_results_do_not_depend_on_the_token_budget(folder: Path) -> None:
    thetas = np.random.default_rng(0).normal(size=(5, 4, 4)).astype(np.float32)
    plenty, little = (
        build_agent(config(folder, f"execution.token_budget={budget}")).evaluator.evaluate(0, thetas)
        for budget in (100_000, 1)
    )
    assert str(plenty.evaluations) == str(little.evaluations)
    assert plenty.trajectories == little.trajectories
    assert little.counts["tokens_prefilled"] > plenty.counts["tokens_prefilled"], "the batch was split"


def test_a_run_without_scoring(folder: Path, tmp_path: Path) -> None:
    """Undefined metrics are written and read; fitness is the reward."""
    run_config(config(folder, "reward.shaping=0", "search.generations=1"), tmp_path)
    (record,) = read_generations(tmp_path)
    assert record.fitness == record.reward
    assert np.isnan(record.metrics["gold_log_probability"])


def killed_worker(directory: Path, arguments: list[str], lines: int, delay: float) -> bool:
    """Start a real process and SIGKILL it that long after it has printed so many lines; whether it died of
    that (it may have been done)."""
    command = [sys.executable, str(WORKER), str(directory), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for _ in range(lines):
            worker.stdout.readline()
        time.sleep(delay)
        worker.send_signal(signal.SIGKILL)
        return worker.wait() == -signal.SIGKILL


def test_a_killed_run_resumes_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    arguments = settings(folder, "search.arm=soft")
    start = time.perf_counter()
    run_config(config(folder, "search.arm=soft"), tmp_path / "undisturbed")
    generation = (time.perf_counter() - start) / 3

    draws = random.Random(4)
    killed = [
        killed_worker(tmp_path / "killed", arguments, lines, draws.uniform(0, generation))
        for lines in (1, 2, 2)
    ]
    reached = len(read_generations(tmp_path / "killed"))
    run_config(config(folder, "search.arm=soft"), tmp_path / "killed", resume=True)

    assert sum(killed) >= 2
    assert reached >= 2
    assert run_bytes(tmp_path / "killed") == run_bytes(tmp_path / "undisturbed")
    fitness = [record.fitness for record in read_generations(tmp_path / "killed")]
    assert len(set(fitness)) == 3, "the run did something"
    assert all(any(record.step_applied) for record in read_generations(tmp_path / "killed"))
