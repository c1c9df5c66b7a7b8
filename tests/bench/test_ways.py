"""The stock ways and the engine answer the same requests alike, on a tiny model; and what the figures mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from nograd.agent.scheduler import Llm, Scheduler
from nograd.agent.trajectory import Step, Trajectory
from nograd.bench.adapters import PeftEngine
from nograd.bench.limits import flops_per_output, flops_per_token
from nograd.bench.naive import NaiveEngine
from nograd.bench.stock import StockEngine, stock_model
from nograd.bench.verdicts import BOUNDS, below, verdict
from nograd.bench.workload import Measured, Workload, candidates, differing, run_one_by_one, run_together
from nograd.llm.architecture import Architecture
from nograd.llm.chat import Message
from nograd.llm.engine import Engine
from nograd.llm.invariance import draw_requests, measure
from nograd.tasks.family import Task
from tiny_models import save_tiny_chat, tiny_scheduler

STAGES = ("one", "two")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chat")
    save_tiny_chat(path)
    return path


@pytest.fixture(scope="module")
def scheduler(folder: Path) -> Scheduler:
    made: Scheduler = tiny_scheduler(folder, STAGES)
    return made


def engine_of(scheduler: Scheduler) -> Engine:
    assert isinstance(scheduler.engine, Engine)
    return scheduler.engine


async def agent(task: Task, llm: Llm) -> Trajectory:
    first = await llm.complete("one", [Message("user", task.question)], max_tokens=6)
    messages = [Message("user", task.question), Message("assistant", first.text), Message("user", "so?")]
    second = await llm.complete("two", messages, max_tokens=5)
    score = await llm.score("two", messages, task.answer)
    steps = (Step("one", first.text), Step("two", second.text))
    return Trajectory(second.text, steps, log_probabilities={"answer": score})


def work(size: int) -> Workload:
    tasks = [Task(str(i), "tell me more " * (i + 1), "yes sir", "", {}, "", ()) for i in range(4)]
    return Workload(agent, tasks, candidates(STAGES, size, pairs=2, seed=3))


def stock(scheduler: Scheduler, folder: Path, way: str, load: Workload) -> StockEngine:
    engine = engine_of(scheduler)
    assert engine.perturbation is not None
    device = torch.device("cpu")
    model = stock_model(folder, torch.float32, device)
    if way == "naive":
        return NaiveEngine(model, engine.eos_ids, device, engine.perturbation.subspace)
    adapters = PeftEngine(model, engine.eos_ids, device, engine.perturbation.subspace)
    adapters.prepare(load.keys())
    return adapters


@pytest.mark.parametrize("way", ["naive", "peft"])
def test_stock_ways_answer_like_the_engine(way: str, scheduler: Scheduler, folder: Path) -> None:
    engine = engine_of(scheduler)
    assert engine.perturbation is not None
    load = work(engine.perturbation.subspace.size)
    ours = run_together(scheduler, load)
    theirs_scheduler = Scheduler(stock(scheduler, folder, way, load), scheduler.chat, STAGES)
    theirs = (run_one_by_one if way == "naive" else run_together)(theirs_scheduler, load)
    assert differing(theirs, ours) == 0
    for one, other in zip(theirs.trajectories, ours.trajectories, strict=True):
        assert one.log_probabilities["answer"] == pytest.approx(other.log_probabilities["answer"], abs=1e-4)
    assert ours.tokens < theirs.tokens


def test_candidates_change_the_answers(scheduler: Scheduler) -> None:
    """Otherwise the comparison above would show nothing."""
    engine = engine_of(scheduler)
    assert engine.perturbation is not None
    load = work(engine.perturbation.subspace.size)
    still = Workload(load.agent, load.tasks, np.zeros_like(load.thetas))
    assert differing(run_together(scheduler, load), run_together(scheduler, still)) > 0


def test_differing_counts_trajectories() -> None:
    same, other = Trajectory("a", (Step("one", "x"),)), Trajectory("a", (Step("one", "y"),))
    assert differing(Measured(1, 1, [same, same]), Measured(1, 1, [same, other])) == 1


def test_invariance_of_a_tiny_model(scheduler: Scheduler) -> None:
    engine = engine_of(scheduler)
    assert engine.perturbation is not None
    prompts = [tuple(scheduler.chat.encode_text("word " * n)) for n in range(3, 11)]
    requests = draw_requests(prompts, [p[:3] for p in prompts], engine.perturbation.subspace.size, 2, seed=5)
    rows = measure(engine, requests)
    assert [row.arrangement for row in rows] == ["shuffled", "halves", "quarters", "alone"]
    assert all(row.requests == 16 and row.tokens == 0 and row.log_probabilities == 0 for row in rows)


def test_invariance_sees_a_difference(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(scheduler)
    assert engine.perturbation is not None
    prompts = [tuple(scheduler.chat.encode_text("word " * n)) for n in range(3, 7)]
    requests = draw_requests(prompts, [p[:2] for p in prompts], engine.perturbation.subspace.size, 2, seed=5)
    honest = engine.transformer.predict

    def noisy(outputs, wanted):  # type: ignore[no-untyped-def]
        best, values = honest(outputs, wanted)
        return best, values + 1e-12 * len(wanted)

    monkeypatch.setattr(engine.transformer, "predict", noisy)
    assert any(row.log_probabilities for row in measure(engine, requests))


def test_flops_of_the_embedded_model() -> None:
    a = Architecture(
        "llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, 1e-5, 0.0, "silu", 1.0, 64, qk_norm=False, tied_embeddings=True
    )
    per_block = 576 * (576 + 2 * 192) + 576 * 576 + 3 * 576 * 1536
    assert flops_per_token(a) == 2 * 30 * per_block
    assert flops_per_output(a) == 2 * 576 * 49152


def test_verdicts() -> None:
    assert [verdict("naive_over_nograd", v) for v in (7.9, 8.0, 12.0)] == ["below", "must", "aim"]
    assert [verdict("growth_p16_over_p4", v) for v in (3.6, 3.5, 3.0)] == ["below", "must", "aim"]
    good = {name: bound.aim for name, bound in BOUNDS.items()}
    assert below(good) == []
    assert below({**good, "decode_share": 0.1, "start_s": 100.0}) == ["decode_share"], "seconds are not judged"
