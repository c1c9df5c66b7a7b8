"""Settings of a tiny random model, on the in-house tasks or on a family that is wrong in some way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nograd.agent.evaluator import Agent, AgentEvaluator
from nograd.agent.four_stage import FourStageAgent, TokenLimits
from nograd.agent.prompts import Prompts, Shots
from nograd.agent.scheduler import Llm, Scheduler
from nograd.agent.trajectory import Step, Trajectory
from nograd.llm.chat import Message
from nograd.preflight.setting import Setting
from nograd.run.config_source import load_config
from nograd.run.loop import search_settings
from nograd.tasks.family import Example, Task, TaskFamily, ToolResult, ToolSpec
from nograd.tasks.in_house import in_house

FAMILY = in_house()
FEW = Shots(1, 1, 1, 1)
SHORT = TokenLimits(4, 16, 40, 16)
Call = Callable[[Task, str, Mapping[str, Any]], ToolResult]


@dataclass
class Changed:
    """The in-house family with another checker or other tools."""

    call: Call = FAMILY.call
    succeeded: Callable[[Task, str], bool] = FAMILY.succeeded
    name: str = "changed"
    tasks: tuple[Task, ...] = FAMILY.tasks
    examples: tuple[Example, ...] = FAMILY.examples
    tool: Callable[[str], ToolSpec | None] = field(default=FAMILY.tool)


async def brief(task: Task, llm: Llm) -> Trajectory:
    """An agent with short prompts: a plan, and an answer that is scored, too."""
    plan = await llm.complete("planner", [Message("user", task.question)], max_tokens=4)
    turns = [Message("user", task.question), Message("assistant", plan.text), Message("user", "so?")]
    answer = await llm.complete("synthesizer", turns, max_tokens=6)
    score = await llm.score("synthesizer", turns, task.answer)
    return Trajectory(answer.text, (Step("planner", plan.text),), log_probabilities={"answer": score})


def tiny_setting(
    scheduler: Scheduler,
    agent: Agent | None = None,
    family: TaskFamily = FAMILY,
    limits: TokenLimits = SHORT,
    settings: tuple[str, ...] = (),
) -> Setting:
    """The four-stage agent, or another, on a scheduler of `tiny_models.tiny_scheduler` with 4 coefficients."""
    config = load_config(None, ["tasks.batch=3", "search.pairs=4", "search.generations=5", *settings])
    evaluator = AgentEvaluator(
        agent or FourStageAgent(family, Prompts(family, FEW), limits),
        family,
        scheduler,
        4,
        seed=config.seed,
        batch_size=config.tasks.batch,
        shaping=config.reward.shaping,
    )
    return Setting(config, evaluator, search_settings(config, evaluator))
