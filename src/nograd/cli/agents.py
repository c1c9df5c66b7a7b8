"""The agent of a finished run, built again as it ran, for questions and for evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.scheduler import Rollout
from nograd.agent.trajectory import Trajectory
from nograd.cli.checks import check_names
from nograd.cli.progress import loading_note
from nograd.errors import ConfigError
from nograd.run.build_agent import build_agent, four_stage
from nograd.run.config import RunConfig
from nograd.run.load import RunRecord
from nograd.run.resume import check_identity
from nograd.tasks.family import Task, TaskFamily


def evaluator_of(record: RunRecord, device: str = "auto") -> AgentEvaluator:
    """The evaluator of a run, in the dtype it ran in. Raises RunError if the model or the tasks are no longer
    the ones it ran with, ConfigError if it did not tune the four-stage agent."""
    check_names(record.config)
    if record.config.evaluator != "agent":
        raise ConfigError(
            f"{record.path} tuned the evaluator {record.config.evaluator!r}, which has no language model to ask"
        )
    loading_note(record.config.model.spec)
    built = build_agent(_as_it_ran(record, device))
    evaluator = built.evaluator
    assert isinstance(evaluator, AgentEvaluator)
    identity = {"modules": list(evaluator.modules), "dim": evaluator.dim, "facts": dict(built.facts)}
    check_identity(record.path, identity)
    return evaluator


def free_task(family: TaskFamily, question: str) -> Task:
    """A task for a free question, or the family's own task of this id or question.

    The gold call of a free task is a placeholder: the agent's prompts want one that names a tool."""
    for task in family.tasks:
        if question in (task.id, task.question):
            return task
    if family.name.startswith("bfcl"):
        raise ConfigError(
            f"the tools of {family.name} only check calls against its own tasks; "
            f"ask one of these by its id, such as {family.tasks[0].id}"
        )
    offered = family.tasks[0].offered
    return Task("free", question, "", offered[0], {}, "", offered)


def play(
    evaluator: AgentEvaluator, config: RunConfig, task: Task, thetas: Sequence[NDArray[np.float32]]
) -> list[Trajectory]:
    """The four-stage agent's trajectory under each θ, float32 [modules, size]; nothing is scored."""
    agent = replace(four_stage(config, evaluator.family), scoring=False)
    evaluator.scheduler.forget()
    return evaluator.scheduler.run([Rollout(partial(agent, task), theta) for theta in thetas])


def _as_it_ran(record: RunRecord, device: str) -> RunConfig:
    """dtype "auto" becomes what it was then; the device may be another."""
    facts = record.environment["identity"]["facts"]
    values = record.config.model_dump()
    values["model"]["dtype"] = facts["dtype"]
    values["execution"]["device"] = device
    return RunConfig.model_validate(values)
