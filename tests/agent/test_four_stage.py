"""The four-stage agent: control flow with scripted replies, and end to end on a tiny random model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

from nograd.agent.four_stage import STAGES, FourStageAgent, TokenLimits
from nograd.agent.prompts import Prompts, gold_arguments
from nograd.agent.scheduler import Messages, Reply, Rollout
from nograd.agent.trajectory import Trajectory
from nograd.llm.chat import Message
from nograd.tasks.family import Task
from nograd.tasks.in_house import in_house
from tiny_models import save_tiny_chat, tiny_scheduler

FAMILY = in_house()
TASK = next(task for task in FAMILY.tasks if task.tool == "calculator")
GOLD = gold_arguments(TASK.arguments)


@dataclass
class Scripted:
    """Answers each stage from its list of texts, in order; keeps what was asked. Scores are −len(target)."""

    texts: dict[str, list[str]]
    asked: list[tuple[str, list[Message], int]] = field(default_factory=list)
    scored: list[tuple[str, list[Message], str]] = field(default_factory=list)

    async def complete(self, stage: str, messages: Messages, *, max_tokens: int = 32) -> Reply:
        self.asked.append((stage, list(messages), max_tokens))
        return Reply(self.texts[stage].pop(0), "stop")

    async def score(self, stage: str, messages: Messages, target: str) -> float:
        self.scored.append((stage, list(messages), target))
        return -float(len(target))

    def messages(self, stage: str) -> list[list[Message]]:
        return [messages for name, messages, _ in self.asked if name == stage]


def play(
    *,
    selector: str = "calculator",
    caller: Sequence[str] = (GOLD,),
    answer: str = TASK.answer,
    **settings: Any,
) -> tuple[Trajectory, Scripted]:
    """One rollout on TASK with these replies; fails if a reply is left over."""
    texts = {"planner": ["Work it out."], "selector": [selector], "caller": list(caller)}
    llm = Scripted({**texts, "synthesizer": [answer]})
    agent = FourStageAgent(FAMILY, Prompts(FAMILY), **settings)
    trajectory = asyncio.run(agent(TASK, llm))  # type: ignore[arg-type]
    assert not any(llm.texts.values()), "every scripted reply was asked for"
    return trajectory, llm


def test_all_goes_well() -> None:
    limits = TokenLimits(planner=5, selector=6, caller=7, synthesizer=8)
    trajectory, llm = play(limits=limits)
    assert [(stage, limit) for stage, _, limit in llm.asked] == [
        ("planner", 5),
        ("selector", 6),
        ("caller", 7),
        ("synthesizer", 8),
    ]
    assert trajectory.answer == TASK.answer
    assert trajectory.checks == {"selector": True, "caller": True}
    assert list(trajectory.checks) == ["selector", "caller"], "in the order of the stages, for blame"
    assert trajectory.attempts == 1
    assert [step.stage for step in trajectory.steps] == list(STAGES)
    assert trajectory.steps[2].outcome == TASK.tool_output
    assert "Work it out." in llm.messages("selector")[0][-1].content
    assert TASK.tool_output in llm.messages("synthesizer")[0][-1].content


def test_gold_targets_are_scored_under_gold_contexts() -> None:
    """Even where the rollout took another way: gold tool for the caller, gold output for the synthesizer."""
    trajectory, llm = play(selector="weekday", caller=['{"date": "2024-03-15"}'], answer="Friday")
    prompts = Prompts(FAMILY)
    assert llm.scored == [
        ("selector", prompts.selector(TASK, "Work it out."), TASK.tool),
        ("caller", prompts.caller(TASK, TASK.tool), GOLD),
        ("synthesizer", prompts.synthesizer(TASK, TASK.tool_output), TASK.answer),
    ]
    expected = {"tool": -len(TASK.tool), "arguments": -len(GOLD), "answer": -len(TASK.answer)}
    assert trajectory.log_probabilities == expected
    assert trajectory.checks == {"selector": False, "caller": True}, "a wrong tool was called well"
    assert llm.messages("synthesizer")[0] == prompts.synthesizer(TASK, "Friday")


def test_without_scoring_nothing_is_scored() -> None:
    trajectory, llm = play(scoring=False)
    assert llm.scored == []
    assert trajectory.log_probabilities == {}


def test_a_failed_call_is_fed_back() -> None:
    trajectory, llm = play(caller=["{broken", GOLD])
    first, second = llm.messages("caller")
    assert second[: len(first)] == first, "the retry goes on after the first attempt: its prefix is cached"
    assert second[len(first)] == Message("assistant", "{broken")
    assert second[-1].role == "user"
    assert "cut off" in second[-1].content
    assert (trajectory.attempts, trajectory.checks["caller"]) == (2, True)
    outcomes = [step.outcome for step in trajectory.steps if step.stage == "caller"]
    assert outcomes[0].startswith("error: ")
    assert outcomes[1] == TASK.tool_output


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_attempts_end(attempts: int) -> None:
    trajectory, llm = play(caller=['{"wrong": 1}'] * attempts, attempts=attempts)
    assert (trajectory.attempts, trajectory.checks["caller"]) == (attempts, False)
    shown = llm.messages("synthesizer")[0][-1].content
    assert "error: " in shown
    assert TASK.answer not in shown.replace(TASK.question, ""), "no gold in an error"


def test_an_unknown_tool_is_a_failed_call_without_a_caller() -> None:
    trajectory, llm = play(selector="a hammer\nor two", caller=[])
    assert llm.messages("caller") == []
    assert trajectory.checks == {"selector": False, "caller": False}
    assert trajectory.attempts == 1
    assert "there is no tool 'a hammer'" in llm.messages("synthesizer")[0][-1].content


@pytest.mark.parametrize(
    "text", ["calculator", " Calculator.\n", "`calculator`", '"CALCULATOR"', "**calculator**\nbecause"]
)
def test_ways_to_name_a_tool(text: str) -> None:
    trajectory, _ = play(selector=text)
    assert trajectory.checks["selector"]


@pytest.mark.parametrize("text", ["", "\n\n", "calculator or lookup", "calc", "the calculator"])
def test_what_names_no_tool(text: str) -> None:
    trajectory, _ = play(selector=text, caller=[])
    assert not trajectory.checks["selector"]


def test_the_answer_is_taken_without_space_around() -> None:
    trajectory, _ = play(answer=" 12 \n")
    assert trajectory.answer == "12"


def test_end_to_end_on_a_random_model(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nonsense in, but whole trajectories out, the same every time and JSON-able."""
    scheduler = tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model")), STAGES)
    agent = FourStageAgent(FAMILY, Prompts(FAMILY), TokenLimits(8, 8, 8, 8))
    thetas = np.random.default_rng(0).normal(size=(2, 4, 4), scale=0.5).astype(np.float32)
    rollouts = [Rollout(partial(agent, task), theta) for theta in thetas for task in FAMILY.tasks[:3]]
    found = scheduler.run(rollouts)
    for trajectory in found:
        assert {step.stage for step in trajectory.steps} >= {"planner", "selector", "synthesizer"}
        assert set(trajectory.log_probabilities) == {"tool", "arguments", "answer"}
        assert all(value < 0 for value in trajectory.log_probabilities.values())
        json.dumps(trajectory.record("t", False), allow_nan=False)
    assert len({str(t.steps) for t in found}) > 3
    scheduler.forget()
    assert scheduler.run(rollouts) == found


@pytest.mark.parametrize("stage", ["planner", "selector", "caller", "synthesizer"])
def test_prompts_put_what_never_changes_first(stage: str) -> None:
    """All but the last message are the same for every task, so that they are computed once per θ."""
    prompts = Prompts(FAMILY)
    makers: dict[str, Callable[[Task], list[Message]]] = {
        "planner": prompts.planner,
        "selector": lambda task: prompts.selector(task, task.id),
        "caller": lambda task: prompts.caller(task, task.tool),
        "synthesizer": lambda task: prompts.synthesizer(task, task.tool_output),
    }
    chats = [makers[stage](task) for task in FAMILY.tasks]
    assert all(chat[:-1] == chats[0][:-1] for chat in chats)
    assert len({chat[-1] for chat in chats}) == len(chats)
    assert [m.role for m in chats[0]][:2] == ["system", "user"]
    assert [m.role for m in chats[0]][1:] == ["user", "assistant"] * ((len(chats[0]) - 2) // 2) + ["user"]


def test_prompts_never_hold_the_gold_of_their_task() -> None:
    prompts = Prompts(FAMILY)
    for task in FAMILY.tasks:
        shown = prompts.planner(task)[-1].content.replace(task.question, "")
        assert task.answer not in shown
        assert task.tool_output not in prompts.caller(task, task.tool)[-1].content.replace(task.question, "")
