"""Tune an agent of your own: any stages, any async code, tasks whose answers can be checked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nograd.agent.evaluator import AgentEvaluator, BlameFunction, RewardFunction
from nograd.agent.scheduler import IO_TIMEOUT, Rollout, Scheduler
from nograd.agent.trajectory import Trajectory, blame_last_failed
from nograd.errors import ConfigError
from nograd.llm.loading import pick_device
from nograd.run.build_agent import engine_spec, load_engine, set_threads, tasks_hash
from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.run.load import load_run
from nograd.run.loop import OnGeneration, run
from nograd.run.own_agent import OwnAgent, checked_agent, checked_blame, checked_reward, own_reward
from nograd.run.own_tasks import Check, OwnTasks, free_task, own_tasks, source_hash
from nograd.run.progress import Lines
from nograd.run.start import check_directory
from nograd.run.summary import RunSummary
from nograd.search.evaluation import Evaluation
from nograd.tasks.family import Task
from nograd.tasks.normalise import same_answer


class Answers(NamedTuple):
    """What the untouched and the tuned agent did with the same question: (untouched, tuned)."""

    untouched: Trajectory
    tuned: Trajectory


class Scores(NamedTuple):
    """How the untouched and the tuned agent do on the same tasks: (untouched, tuned), with success, reward, rates …"""

    untouched: Evaluation
    tuned: Evaluation


@dataclass(frozen=True, eq=False)
class TuneResult:
    """theta: float32 [stages, size], the tuned coefficients. summary: the run's numbers."""

    theta: NDArray[np.float32]
    summary: RunSummary
    run_dir: Path
    evaluator: AgentEvaluator = field(repr=False)
    check: Check = field(repr=False)

    def ask(self, question: str) -> Answers:
        """Both agents' trajectories for a free question (a task whose answer is empty)."""
        task = free_task(question)
        self.evaluator.scheduler.forget()
        rollouts = [Rollout(partial(self.evaluator.agent, task), theta, task.id) for theta in self._both()]
        return Answers(*self.evaluator.scheduler.run(rollouts))

    def evaluate(self, tasks: Sequence[Task | Mapping[str, Any]]) -> Scores:
        """Both agents on tasks of the caller's, such as held-out ones; given as to `tune`."""
        chosen = own_tasks(tasks, self.check).tasks
        outcomes = self.evaluator.outcomes(chosen, np.stack(self._both()))
        return Scores(*(outcome.evaluation for outcome in outcomes))

    def _both(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.zeros_like(self.theta), self.theta


def tune(
    agent: OwnAgent,
    tasks: Sequence[Task | Mapping[str, Any]],
    stages: Sequence[str],
    *,
    out: Path | str,
    model: str = "smollm2-135m",
    seed: int = 1,
    generations: int = 45,
    pairs: int = 4,
    batch: int | None = None,
    shaping: float = 0.0,
    check: Check = same_answer,
    reward: RewardFunction = own_reward,
    blame: BlameFunction = blame_last_failed,
    io_timeout: float = IO_TIMEOUT,
    settings: Sequence[str] = (),
    resume: bool = False,
    progress: bool | OnGeneration = True,
) -> TuneResult:
    """Tune your own agent on your own tasks and keep the run in the directory `out`.

    agent: async function of a task and a handle to the model; every `llm.complete(stage, …)` runs under that
    stage's coefficients. It may loop, branch, await tools and sub-agents, also several at once. Returns the final
    answer, or a `Trajectory` with steps to read, checks by stage and gold log-probabilities. It must depend on
    nothing but its arguments; clients that keep connections are opened inside it, for every generation has an
    event loop of its own.
    tasks: `Task` objects, or mappings with a question and an answer. stages: names, in the order of the work.
    batch: tasks per generation (default: 16, or all if there are fewer). check(gold, answer): whether an answer
    is right. shaping: weight w of the mean gold log-probability in the fitness; above 0, the agent must return
    log-probabilities. reward(trajectory, success): a number. blame(trajectory, stages): shares that sum to 1,
    asked of failures: by default all of it goes to the last stage whose check failed.
    io_timeout: seconds that all rollouts may wait for tools while none of them goes on.
    settings: any other setting as for `nograd run --set`, e.g. "search.arm=soft".
    resume: go on with the run in `out`, if there is one. progress: True prints a line per generation; a function
    is called with each `GenerationRecord` instead.
    Raises NogradError with what to change; what the agent raises passes through,
    with a note that names the task and the stage."""
    _check_call(stages)
    family = own_tasks(tasks, check)
    config = load_config(
        None,
        [
            f"seed={seed}",
            "evaluator=own",
            f"model.spec={model}",
            "tasks.family=own",
            f"tasks.batch={batch or min(16, len(family.tasks))}",
            f"search.generations={generations}",
            f"search.pairs={pairs}",
            f"reward.shaping={float(shaping)}",
            *settings,
        ],
    )
    check_directory(Path(out), config, resume)
    evaluator, facts = _evaluator(config, agent, family, stages, reward, blame)
    evaluator.scheduler.io_timeout = io_timeout
    machine = {
        "device": pick_device(config.execution.device).type,
        "threads": torch.get_num_threads(),
    }
    summary = run(
        config,
        evaluator,
        out,
        facts=facts,
        machine=machine,
        resume=resume,
        on_generation=_listener(progress, generations),
    )
    return TuneResult(load_run(out).theta[-1], summary, Path(out), evaluator, check)


def _check_call(stages: Sequence[str]) -> None:
    if isinstance(stages, str) or not stages or len(set(stages)) != len(stages):
        raise ConfigError(f"stages must be one or more distinct names in a list, got {stages!r}")
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigError(
        "nograd.tune runs its own event loop, and one is running here already (a notebook?); "
        "call it as `await asyncio.to_thread(nograd.tune, …)`, or from a plain script"
    )


def _listener(progress: bool | OnGeneration, generations: int) -> OnGeneration | None:
    if progress is True:
        return Lines(generations)
    return progress or None


def _evaluator(
    config: RunConfig,
    agent: OwnAgent,
    family: OwnTasks,
    stages: Sequence[str],
    reward: RewardFunction,
    blame: BlameFunction,
) -> tuple[AgentEvaluator, dict[str, Any]]:
    """The evaluator, and what its results depend on beyond the configuration."""
    set_threads(config.execution.threads)
    code = {"agent": agent, "check": family.check, "reward": reward, "blame": blame}
    sources = {name: source_hash(function) for name, function in code.items()}
    loaded = load_engine(engine_spec(config, len(stages)))
    evaluator = AgentEvaluator(
        checked_agent(agent, stages, config.reward.shaping),
        family,
        Scheduler(loaded.engine, loaded.chat, stages),
        loaded.size,
        seed=config.seed,
        batch_size=config.tasks.batch,
        shaping=config.reward.shaping,
        reward=checked_reward(reward),
        blame_function=checked_blame(blame),
    )
    return evaluator, {**loaded.facts, "tasks": tasks_hash(family), **sources}

