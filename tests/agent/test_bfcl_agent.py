"""The four-stage agent on BFCL: dotted names end to end, what the prompts say and hide, when a rollout succeeds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np
import pytest

from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.four_stage import STAGES, FourStageAgent, TokenLimits
from nograd.agent.prompts import Prompts, gold_arguments
from nograd.agent.scheduler import Llm, Messages, Reply, Scheduler
from nograd.agent.toolcall import ParsedCall, parse_call
from nograd.agent.trajectory import Trajectory
from nograd.assets import asset_path
from nograd.errors import AssetError
from nograd.llm.loading import load_chat
from nograd.llm.sources import find_model
from nograd.tasks.bfcl.family import CONSTANT, REFUSED, Bfcl
from nograd.tasks.family import Task
from tiny_models import save_tiny_chat, tiny_scheduler

VARIANTS = ({}, {"heldout": True}, {"echo": True}, {"heldout": True, "echo": True})


@pytest.fixture(scope="module")
def families() -> list[Bfcl]:
    try:
        return [Bfcl(**options) for options in VARIANTS]
    except AssetError as error:
        pytest.skip(f"BFCL cannot be fetched: {error}")


@dataclass
class Replies:
    """Answers each stage with one text; the synthesizer repeats what it is shown after the last colon."""

    selector: str
    caller: str
    synthesizer: str = ""

    async def complete(self, stage: str, messages: Messages, *, max_tokens: int = 32) -> Reply:
        del max_tokens
        relayed = messages[-1].content.rpartition(": ")[2]
        texts = {"planner": "Do it.", "selector": self.selector, "caller": self.caller}
        return Reply(texts.get(stage, self.synthesizer or relayed), "stop")

    async def score(self, stage: str, messages: Messages, target: str) -> float:
        raise AssertionError((stage, messages, target))


def play(family: Bfcl, task: Task, replies: Replies) -> Trajectory:
    agent = FourStageAgent(family, Prompts(family), scoring=False)
    return asyncio.run(agent(task, replies))  # type: ignore[arg-type]


def test_gold_replies_reach_success_whatever_the_name(families: list[Bfcl]) -> None:
    dotted = 0
    for family in families:
        for task in family.tasks:
            written = f' "`{task.tool.upper()}`".\nbecause'
            trajectory = play(family, task, Replies(written, gold_arguments(task.arguments)))
            assert trajectory.checks == {"selector": True, "caller": True}, task.id
            assert family.succeeded(task, trajectory.answer), task.id
            dotted += "." in task.tool
    assert dotted > 100


def test_dotted_names_in_an_envelope(families: list[Bfcl]) -> None:
    for task in families[1].tasks:
        text = f'```json\n{{"name": "{task.tool}", "arguments": {gold_arguments(task.arguments)}}}\n```'
        assert parse_call(text) == ParsedCall(dict(task.arguments), task.tool)


def test_a_part_of_a_dotted_name_is_another_name(families: list[Bfcl]) -> None:
    task = next(task for task in families[0].tasks if "." in task.tool)
    trajectory = play(families[0], task, Replies(task.tool.rpartition(".")[2], "{}"))
    assert trajectory.checks == {"selector": False, "caller": False}


def test_prompts_name_the_tools_and_the_parameters(families: list[Bfcl]) -> None:
    for family in families:
        prompts = Prompts(family)
        for task in family.tasks:
            lines = prompts.selector(task, "a plan")[-1].content.splitlines()
            assert lines[: len(task.offered) + 1] == ["Tools:", *(f"- {name}" for name in task.offered)]
            assert lines[-1] == "Plan: a plan"
            for tool in task.offered:
                asked = prompts.caller(task, tool)[-1].content
                spec = family.tool(tool)
                assert spec is not None
                assert asked.startswith(f"Tool: {tool}\n")
                assert all(f"\n- {name}: " in asked for name in spec.parameters)


def test_only_the_tool_gives_the_answer_away(families: list[Bfcl]) -> None:
    for family in families:
        prompts = Prompts(family)
        for task in family.tasks:
            shown = [
                prompts.planner(task),
                prompts.selector(task, ""),
                prompts.caller(task, task.tool),
                prompts.synthesizer(task, f"error: {REFUSED}"),
            ]
            assert not any(task.answer in message.content for chat in shown for message in chat)
            assert task.answer in prompts.synthesizer(task, task.tool_output)[-1].content


def test_a_guessed_constant_is_no_success(families: list[Bfcl], tmp_path_factory: pytest.TempPathFactory) -> None:
    """CORRECT after a refused call: failed, and the caller is to blame; after an accepted one: success."""
    family = families[0]
    scheduler = tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model")), STAGES)
    assert isinstance(scheduler, Scheduler)
    accepted = {task.id: index % 3 == 0 for index, task in enumerate(family.tasks)}

    async def agent(task: Task, llm: Llm) -> Trajectory:
        del llm
        arguments = gold_arguments(task.arguments) if accepted[task.id] else '{"nothing": 0}'
        played = FourStageAgent(family, Prompts(family), scoring=False)
        return await played(task, Replies(task.tool, arguments, CONSTANT))  # type: ignore[arg-type]

    evaluator = AgentEvaluator(agent, family, scheduler, 4, seed=1, shaping=0.0)
    (outcome,) = evaluator.outcomes(family.tasks, np.zeros((1, 4, 4), np.float32))
    assert [row["success"] for row in outcome.records] == list(accepted.values())
    assert {row["answer"] for row in outcome.records} == {CONSTANT}
    assert outcome.evaluation.success == outcome.evaluation.metrics["call_ok"] == 16 / 48
    assert outcome.evaluation.metrics["relay"] == 1.0
    assert outcome.evaluation.blame == (0.0, 0.0, 1.0, 0.0)


@pytest.mark.real
def test_gold_fits_the_token_limits_of_the_embedded_model(families: list[Bfcl]) -> None:
    try:
        asset_path("smollm2-135m")
    except AssetError as error:
        pytest.skip(f"the embedded model cannot be fetched: {error}")
    source = find_model("smollm2-135m")
    chat, limits = load_chat(source.folder, source.name), TokenLimits()
    for task in (task for family in families for task in family.tasks):
        for text, limit in (
            (gold_arguments(task.arguments), limits.caller),
            (task.tool, limits.selector),
            (task.answer, limits.synthesizer),
        ):
            assert len(chat.encode_text(text)) < limit, text  # one more token ends the text
