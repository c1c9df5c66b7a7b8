"""A run's agent built again as it ran, on its own tasks or on others."""

from __future__ import annotations

from dataclasses import replace

from nograd.agent.evaluator import AgentEvaluator
from nograd.errors import ConfigError
from nograd.run.build_agent import build_agent, four_stage
from nograd.run.config import RunConfig
from nograd.run.config_source import make_config
from nograd.run.load import RunRecord
from nograd.run.resume import check_identity
from nograd.tasks.family import Task, TaskFamily


def check_agent(run: RunRecord) -> None:
    """Raise ConfigError if the run did not tune the four-stage agent. Cheap: loads nothing."""
    if run.config.evaluator == "own":
        raise ConfigError(
            f"the agent of {run.path} lives in the Python program that called nograd.tune; ask it there: "
            f"nograd.tune(…, resume=True) returns the tuned agent, with .ask(question) and .evaluate(tasks)"
        )
    if run.config.evaluator != "agent":
        raise ConfigError(
            f"{run.path} tuned the evaluator {run.config.evaluator!r}, which has no language model to ask"
        )


def rebuild(run: RunRecord, device: str = "auto") -> AgentEvaluator:
    """The evaluator of a run, in the dtype it ran in. Raises RunError if the model or the tasks are no longer
    the ones it ran with, ConfigError if it did not tune the four-stage agent."""
    check_agent(run)
    built = build_agent(as_it_ran(run, device))
    evaluator = built.evaluator
    assert isinstance(evaluator, AgentEvaluator)
    identity = {"modules": list(evaluator.modules), "dim": evaluator.dim, "facts": dict(built.facts)}
    check_identity(run.path, identity)
    return evaluator


def on_tasks(evaluator: AgentEvaluator, config: RunConfig, family: TaskFamily) -> AgentEvaluator:
    """The same model and agent on other tasks; nothing is scored, for no training is to follow."""
    agent = replace(four_stage(config, family), scoring=False)
    return AgentEvaluator(
        agent,
        family,
        evaluator.scheduler,
        evaluator.dim,
        seed=config.seed,
        shaping=0.0,
        reward=evaluator.reward,
    )


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


def as_it_ran(run: RunRecord, device: str) -> RunConfig:
    """dtype "auto" becomes what it was then; the device may be another. Raises ConfigError for an unknown one."""
    values = run.config.model_dump()
    values["model"]["dtype"] = run.environment["identity"]["facts"]["dtype"]
    values["execution"]["device"] = device
    return make_config(values)
