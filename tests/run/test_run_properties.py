"""What the paper's controls rest on, in real runs: which changes of a setting must not change a single bit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from run_bytes import run_bytes
from vector_world import MODULES, VectorWorld, vector_config

from nograd import Llm, Message, Step, Task, Trajectory
from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.four_stage import STAGES
from nograd.llm.requests import Request, Result, ScoreRequest
from nograd.run.build_agent import build_agent
from nograd.run.compare import Comparison, compare_runs
from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.run.generation import GenerationRecord
from nograd.run.load import RunRecord, load_run
from nograd.run.loop import run
from nograd.run.start import run_config
from nograd.run.tune import tune
from tiny_models import save_tiny_chat

BURST = "burst:module=synthesizer"
CYCLE = len(MODULES)
TASKS = [{"question": question, "answer": answer} for question, answer in (("a?", "a"), ("b?", "b"), ("c?", "c"))]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny", max_position_embeddings=4096)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOGRAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def vector_run(tmp_path: Path) -> Callable[..., RunRecord]:
    """A run on the cheap world with these settings."""

    def make(*settings: str) -> RunRecord:
        config = vector_config("search.generations=8", "seed=3", *settings)
        folder = tmp_path / re.sub(r"\W+", "-", " ".join(("run", *settings)))
        run(config, VectorWorld(config.seed), folder)
        return load_run(folder)

    return make


def agent_config(model: Path, *more: str) -> RunConfig:
    limits = [f"agent.token_limits.{stage}=4" for stage in STAGES]
    own = ["model.dtype=float32", "execution.device=cpu", "execution.threads=1", "tasks.batch=2", "subspace.dim=4"]
    return load_config(None, [f"model.spec={model}", "search.generations=3", *own, *limits, *more])


async def half_idle(task: Task, llm: Llm) -> Trajectory:
    """Two stages whose texts nobody reads, and one that answers."""
    ask = [Message("user", task.question)]
    await llm.complete("drafter", ask, max_tokens=4)
    await llm.complete("critic", ask, max_tokens=4)
    answer = await llm.complete("answerer", ask, max_tokens=2)
    gold = await llm.score("answerer", ask, task.answer)
    return Trajectory(answer.text, (Step("answerer", answer.text),), log_probabilities={"answer": gold})


def test_locks_on_two_inert_modules_give_the_same_trajectories(model: Path, tmp_path: Path) -> None:
    """Paper §5.12: lock-planner and lock-selector, bit-identical in 4 of 4 seeds."""

    def locked(module: str) -> RunRecord:
        settings = ["subspace.dim=4", "model.dtype=float32", "execution.threads=1", f"search.arm=lock:module={module}"]
        stages = ["drafter", "critic", "answerer"]
        options: dict[str, Any] = {"model": str(model), "generations": 4, "shaping": 0.5, "progress": False}
        tune(half_idle, TASKS, stages, out=tmp_path / module, settings=settings, **options)
        return load_run(tmp_path / module)

    drafter, critic, answerer = (locked(module) for module in ("drafter", "critic", "answerer"))
    inert = compare_runs(drafter, critic)
    assert inert.divergence == dict.fromkeys(inert.divergence) | {"allocation": 0}
    for which in ("first", "newest"):
        assert drafter.trajectories(which) == critic.trajectories(which)
    assert all(record.counts["requests_computed"] > 4 * len(TASKS) for record in drafter.generations[1:])
    active = compare_runs(drafter, answerer)
    assert (active.divergence["theta"], active.divergence["center"]) == (1, 1)


def test_a_clip_that_never_binds_changes_no_bit_when_raised(vector_run: Callable[..., RunRecord]) -> None:
    """Paper §5.14 (Q2)."""
    plain = vector_run("search.lr=0.02")
    assert not plain.array("clip_bound").any()
    for raised in ("search.clip=2", "search.clip=inf", "search.clip.caller=1"):
        assert compare_runs(plain, vector_run("search.lr=0.02", raised)).identical, raised
    lowered = compare_runs(plain, vector_run("search.lr=0.02", "search.clip.caller=0.001"))
    assert (lowered.identical, lowered.divergence["theta"]) == (False, 1)


def test_a_burst_clip_that_never_binds_changes_no_bit_when_raised(vector_run: Callable[..., RunRecord]) -> None:
    plain, raised = (vector_run("search.lr=0.02", f"search.arm={BURST}{x}") for x in ("", ",clip_scale=4"))
    assert not plain.array("clip_bound").any()
    found = compare_runs(plain, raised)
    assert found.identical
    assert set(found.settings) == {"search.arm"}


def test_ipw_is_a_no_op_under_uniform(vector_run: Callable[..., RunRecord]) -> None:
    """Paper §5.14 (O)."""
    assert compare_runs(vector_run(), vector_run("search.arm=uniform:ipw=true")).identical
    routed = (vector_run("search.pairs=8", f"search.arm=hard:floor=1{x}") for x in ("", ",ipw=true"))
    assert not compare_runs(*routed).identical


@pytest.mark.parametrize("pairs", [4, 9])
def test_a_burst_cycle_gives_every_module_the_pairs_of_uniform(
    pairs: int, vector_run: Callable[..., RunRecord]
) -> None:
    """Paper §5.14 (Q1)."""
    budget = f"search.pairs={pairs}"
    uniform, burst = (vector_run(budget, f"search.arm={arm}").array("allocation") for arm in ("uniform", BURST))
    for start in range(0, 8, CYCLE):
        cycle = slice(start, start + CYCLE)
        np.testing.assert_array_equal(burst[cycle].sum(axis=0), uniform[cycle].sum(axis=0))
    assert (burst[:, MODULES.index("synthesizer")] > 0).sum() == 2


@pytest.mark.parametrize(("option", "first"), [("catch_up", 1), ("spread", 2)])
def test_compensation_equals_burst_until_its_first_step(
    option: str, first: int, vector_run: Callable[..., RunRecord]
) -> None:
    """Generation 0 is a burst generation, so only its candidates come before the first burst step. The first
    sub-step of spread is the whole step of burst (the clip does not bind); its second one is the difference."""
    plain, compensated = (vector_run("search.lr=0.02", f"search.arm={BURST}{x}") for x in ("", f",{option}=true"))
    found = compare_runs(plain, compensated)
    assert found.divergence["allocation"] is None
    assert found.divergence["theta"] == first
    others = [number for aspect, number in found.divergence.items() if number is not None and aspect != "theta"]
    assert min(others) >= first
    assert found.distance is not None
    assert (found.distance[first] > 0).tolist() == [name == "synthesizer" for name in MODULES]
    assert compensated.generations[0].step_raw[3] == pytest.approx(CYCLE * plain.generations[0].step_raw[3])


def test_a_replay_of_the_first_generations_with_instruments_is_the_same(model: Path, tmp_path: Path) -> None:
    """Soft, whose β grows over the planned run, so a replay keeps the plan and stops early."""
    config = agent_config(model, "search.arm=soft", "search.generations=4")
    run_config(config, tmp_path / "whole")

    built = build_agent(config)
    seen: list[NDArray[np.float32]] = []

    class Watched:
        modules: Sequence[str] = built.evaluator.modules
        dim = built.evaluator.dim

        def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> Any:
            seen.append(thetas)
            return built.evaluator.evaluate(generation, thetas)

        def bottleneck(self, generation: int) -> int | None:
            return built.evaluator.bottleneck(generation)

    class DoneError(Exception):
        pass

    def stop_after_two(record: GenerationRecord) -> None:
        if record.generation == 1:
            raise DoneError

    tracked = config.model_copy(update={"execution": config.execution.model_copy(update={"track": "tensorboard"})})
    with pytest.raises(DoneError):
        run(tracked, Watched(), tmp_path / "replay", facts=built.facts, on_generation=stop_after_two)

    whole, replay = run_bytes(tmp_path / "whole"), run_bytes(tmp_path / "replay")
    lines = whole["generations.jsonl"].splitlines(keepends=True)
    assert replay["generations.jsonl"] == b"".join(lines[:2])
    assert any(name.startswith("tensorboard/") for name in replay)
    for name in ("checkpoints/00000.safetensors", "checkpoints/00001.safetensors", "trajectories/first.jsonl"):
        assert replay[name] == whole[name]
    assert compare_runs(load_run(tmp_path / "whole"), load_run(tmp_path / "replay")).identical
    assert len(seen) == 2
    assert load_run(tmp_path / "whole").theta[1:3].any(axis=2).all(), "every module moved"


class CountingEngine:
    """The engine itself, with a count of the scoring requests that reach it."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.scores = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run(self, requests: Sequence[Request]) -> list[Result]:
        self.scores += sum(isinstance(request, ScoreRequest) for request in requests)
        return list(self._engine.run(requests))


@pytest.mark.parametrize("shaping", [0.0, 0.5])
def test_shaping_0_asks_for_no_scoring(shaping: float, model: Path, tmp_path: Path) -> None:
    config = agent_config(model, f"reward.shaping={shaping}", "search.generations=2")
    evaluator = build_agent(config).evaluator
    assert isinstance(evaluator, AgentEvaluator)
    evaluator.scheduler.engine = counting = CountingEngine(evaluator.scheduler.engine)
    run(config, evaluator, tmp_path)
    assert (counting.scores > 0) == (shaping > 0)
    assert all((record.fitness == record.reward) == (shaping == 0) for record in load_run(tmp_path).generations)


def test_every_option_is_reached_from_a_file_and_from_flags_and_written_down(model: Path, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        f'[search]\narm = "{BURST},floor=1,ipw=true,catch_up=true,clip_scale=2"\npairs = 8\n'
        "clip = { caller = 0.0001, planner = 7.0 }\n"
        '[subspace]\nbasis = "matched"\nbinding = "shuffled"\nparameterisation = "per_layer"\n'
        "[reward]\nshaping = 0.25\n"
    )
    flags = [
        f"search.arm={BURST},floor=1,ipw=true,catch_up=true,clip_scale=2",
        "search.pairs=8",
        "search.clip.caller=0.0001",
        "search.clip.planner=7.0",
        "subspace.basis=matched",
        "subspace.binding=shuffled",
        "subspace.parameterisation=per_layer",
        "reward.shaping=0.25",
    ]
    config = agent_config(model, "search.generations=1", *flags)
    from_file = load_config(tmp_path / "own.toml", ["search.generations=1", "subspace.dim=4"])
    assert (from_file.search, from_file.subspace, from_file.reward) == (config.search, config.subspace, config.reward)

    run_config(config, tmp_path / "run")
    found = load_run(tmp_path / "run")
    assert found.config == config
    assert found.theta.shape == (2, 4, 2 * 4), "two layers with four coefficients each"
    (record,) = found.generations
    assert record.allocation == (1, 1, 1, 5)
    assert record.inclusion == (1.0, 1.0, 1.0, 1.0)
    caller = MODULES.index("caller")
    assert record.clip_bound[caller] == (record.step_raw[caller] > 0.0001)
    assert record.step_applied[caller] <= 0.0001 * (1 + 1e-6)


def test_the_gain_that_a_bandit_follows_is_written_down(vector_run: Callable[..., RunRecord]) -> None:
    found: Comparison = compare_runs(vector_run("search.arm=bandit"), vector_run("search.arm=bandit:explore=1"))
    assert found.divergence["allocation"] is not None
    for record in found.a.generations:
        assert (np.isfinite(record.gains) <= (np.array(record.allocation) > 0)).all()
        assert all(0.05 <= chance <= 1 for chance in record.inclusion)
    blind = [record.inclusion for record in found.b.generations]
    np.testing.assert_allclose(blind, 1 - 0.75**4)
