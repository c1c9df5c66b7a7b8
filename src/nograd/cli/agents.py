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
from nograd.run.build_agent import four_stage
from nograd.run.config import RunConfig
from nograd.run.load import RunRecord
from nograd.run.rebuild import check_agent, rebuild
from nograd.tasks.family import Task


def evaluator_of(record: RunRecord, device: str = "auto") -> AgentEvaluator:
    """The evaluator of a run, as `run.rebuild.rebuild` makes it, with a note about the loading."""
    check_agent(record)
    check_names(record.config)
    loading_note(record.config.model.spec)
    return rebuild(record, device)


def play(
    evaluator: AgentEvaluator, config: RunConfig, task: Task, thetas: Sequence[NDArray[np.float32]]
) -> list[Trajectory]:
    """The four-stage agent's trajectory under each θ, float32 [modules, size]; nothing is scored."""
    agent = replace(four_stage(config, evaluator.family), scoring=False)
    evaluator.scheduler.forget()
    return evaluator.scheduler.run([Rollout(partial(agent, task), theta) for theta in thetas])
