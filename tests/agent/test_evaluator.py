"""The evaluator: fitness, blame and metrics in closed form, and candidates as the search means them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.four_stage import STAGES, FourStageAgent, TokenLimits
from nograd.agent.prompts import Prompts
from nograd.agent.scheduler import Llm, Scheduler
from nograd.agent.trajectory import Trajectory, blame_last_failed
from nograd.llm.chat import Message
from nograd.search.evaluation import Evaluation
from nograd.tasks.family import Task
from nograd.tasks.in_house import in_house
from tiny_models import save_tiny_chat, tiny_scheduler

FAMILY = in_house()
ZERO = np.zeros((1, 4, 4), dtype=np.float32)
Play = Callable[[Task], Trajectory]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Scheduler:
    return tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model")), STAGES)


def evaluation(scheduler: Scheduler, play: Play, tasks: int = 4, shaping: float = 0.5) -> Evaluation:
    """The evaluation of an agent that asks nothing and returns these trajectories."""

    async def agent(task: Task, llm: Llm) -> Trajectory:
        del llm
        return play(task)

    evaluator = AgentEvaluator(agent, FAMILY, scheduler, 4, seed=1, shaping=shaping)
    (found,) = evaluator.evaluate_tasks(FAMILY.tasks[:tasks], ZERO).evaluations
    return found


def test_closed_form(scheduler: Scheduler) -> None:
    """Four rollouts: one succeeds in two attempts, one each fails by selector, caller and synthesizer."""
    tasks = FAMILY.tasks[:4]
    made = {
        tasks[0].id: Trajectory(
            tasks[0].answer, (), {"selector": True, "caller": True}, 2, {"tool": -1.0, "answer": -3.0}
        ),
        tasks[1].id: Trajectory(
            "no", (), {"selector": False, "caller": True}, 1, {"tool": -2.0, "answer": -4.0}
        ),
        tasks[2].id: Trajectory(
            "no", (), {"selector": True, "caller": False}, 2, {"tool": 0.0, "answer": -1.0}
        ),
        tasks[3].id: Trajectory(
            "no", (), {"selector": True, "caller": True}, 1, {"tool": -1.0, "answer": -1.5}
        ),
    }
    found = evaluation(scheduler, lambda task: made[task.id])
    reward = (1.27 + 0.15 + 0.12 + 0.30) / 4
    log_probability = (-2.0 - 3.0 - 0.5 - 1.25) / 4
    assert found.reward == pytest.approx(reward)
    assert found.fitness == pytest.approx(reward + 0.5 * log_probability)
    assert found.success == 0.25
    assert found.blame == pytest.approx((0, 1 / 3, 1 / 3, 1 / 3))
    assert dict(found.metrics) == pytest.approx(
        {
            "tool_accuracy": 0.75,
            "call_ok": 0.75,
            "relay": 1 / 3,
            "attempts": 1.5,
            "gold_log_probability": log_probability,
        }
    )
    heavier = evaluation(scheduler, lambda task: made[task.id], shaping=2.0)
    assert heavier.fitness == pytest.approx(reward + 2 * log_probability)
    unshaped = evaluation(scheduler, lambda task: made[task.id], shaping=0.0)
    assert unshaped.fitness == unshaped.reward == found.reward


def test_success_is_that_of_the_normalised_answer(scheduler: Scheduler) -> None:
    found = evaluation(scheduler, lambda task: Trajectory(f' "{task.answer.upper()}". '))
    assert found.success == 1.0
    assert found.blame is None, "nothing failed, nobody is blamed"


def test_empty_rates_are_undefined_and_do_not_reach_fitness(scheduler: Scheduler) -> None:
    found = evaluation(
        scheduler, lambda _: Trajectory("no", (), {"selector": False, "caller": False}), shaping=0
    )
    assert np.isnan(found.metrics["relay"])
    assert np.isnan(found.metrics["gold_log_probability"])
    assert found.fitness == 0.0


def test_a_target_that_could_not_be_scored_makes_the_fitness_undefined(scheduler: Scheduler) -> None:
    """Then the search drops the pair; the reward and the success stand."""
    found = evaluation(scheduler, lambda task: Trajectory(task.answer, (), {}, 1, {"tool": float("nan")}))
    assert np.isnan(found.fitness)
    assert (found.success, found.reward) == (1.0, 1.0)


def test_rates_of_any_other_agent_are_by_stage(scheduler: Scheduler) -> None:
    """Of the rollouts in which a stage was checked; a stage that never was has none."""
    other = Scheduler(scheduler.engine, scheduler.chat, ("draft", "review", "selector"))
    made = iter(({"draft": True}, {"draft": False, "review": True}, {"draft": True}, {}))

    async def agent(task: Task, llm: Llm) -> Trajectory:
        del task, llm
        return Trajectory("no", (), next(made))

    evaluator = AgentEvaluator(agent, FAMILY, other, 4, seed=1, shaping=0.0, blame_function=blame_last_failed)
    (found,) = evaluator.evaluate_tasks(FAMILY.tasks[:4], ZERO[:, :3]).evaluations
    assert found.metrics["draft_ok"] == pytest.approx(2 / 3)
    assert found.metrics["review_ok"] == 1.0
    assert np.isnan(found.metrics["selector_ok"])
    assert not {"tool_accuracy", "call_ok", "relay"} & set(found.metrics)
    assert found.blame == pytest.approx((1 / 12 + 1 / 4, 1 / 12, 2 / 4 + 1 / 12))


def test_batches_are_keyed_by_seed_and_generation(scheduler: Scheduler) -> None:
    def batches(seed: int, size: int) -> list[tuple[str, ...]]:
        async def agent(task: Task, llm: Llm) -> Trajectory:
            raise NotImplementedError

        evaluator = AgentEvaluator(agent, FAMILY, scheduler, 4, seed=seed, batch_size=size)
        return [tuple(task.id for task in evaluator.tasks(generation)) for generation in range(12)]

    first = batches(1, 16)
    assert first == batches(1, 16)
    assert len(set(first)) == 12
    assert not set(first) & set(batches(2, 16))
    assert all(len(set(batch)) == 16 for batch in first)
    assert set(batches(1, 32)[0]) == {task.id for task in FAMILY.tasks}


def test_what_the_search_sees(scheduler: Scheduler) -> None:
    async def agent(task: Task, llm: Llm) -> Trajectory:
        raise NotImplementedError

    evaluator = AgentEvaluator(agent, FAMILY, scheduler, 7, seed=1)
    assert (tuple(evaluator.modules), evaluator.dim, evaluator.bottleneck(3)) == (STAGES, 7, None)


def candidates(modules: int = 4, seed: int = 0) -> NDArray[np.float32]:
    """The center and one mirrored pair per module: row 1 + 2m, 2 + 2m differ from it in module m alone."""
    draw = np.random.default_rng(seed)
    thetas = np.repeat(draw.normal(size=(1, modules, 4), scale=0.3), 1 + 2 * modules, axis=0)
    for module in range(modules):
        step = draw.normal(size=4)
        thetas[1 + 2 * module, module] += step
        thetas[2 + 2 * module, module] -= step
    return thetas.astype(np.float32)


def test_candidates_on_a_real_model(scheduler: Scheduler) -> None:
    """Every candidate gets what it gets alone; what it shares with the center is computed once."""
    agent = FourStageAgent(FAMILY, Prompts(FAMILY), TokenLimits(6, 6, 6, 6))
    evaluator = AgentEvaluator(agent, FAMILY, scheduler, 4, seed=3, batch_size=2)
    thetas = candidates()
    together = evaluator.evaluate(5, thetas)
    assert together.counts["requests_computed"] <= 0.5 * together.counts["requests_asked"]
    assert len(together.trajectories) == 2
    assert [t["task"] for t in together.trajectories] == [task.id for task in evaluator.tasks(5)]
    assert len({e.fitness for e in together.evaluations}) > 4, "θ matters"
    for row in (0, 3, 8):
        alone = evaluator.evaluate(5, thetas[row : row + 1])
        assert str(alone.evaluations[0]) == str(together.evaluations[row])
    again = evaluator.evaluate(5, thetas)
    assert str(again) == str(together), "a pure function of generation and candidates"


def test_a_stage_sees_only_its_own_coefficients(scheduler: Scheduler) -> None:
    """Asking one stage gives every candidate that leaves its module alone the center's very answer."""

    async def agent(task: Task, llm: Llm) -> Trajectory:
        score = await llm.score("caller", [Message("user", task.question)], task.answer)
        return Trajectory("", log_probabilities={"answer": score})

    evaluator = AgentEvaluator(agent, FAMILY, scheduler, 4, seed=1)
    found = evaluator.evaluate_tasks(FAMILY.tasks[:2], candidates())
    fitness = [e.fitness for e in found.evaluations]
    own = {1 + 2 * STAGES.index("caller"), 2 + 2 * STAGES.index("caller")}
    assert all((value != fitness[0]) == (row in own) for row, value in enumerate(fitness))
    assert found.counts["requests_asked"] == 18
    assert found.counts["requests_computed"] == 6
