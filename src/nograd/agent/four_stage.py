"""The paper's agent: planner, selector, caller (with retries) and synthesizer, as plain async Python."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from nograd.agent.prompts import Prompts, gold_arguments
from nograd.agent.scheduler import Llm, Messages, Reply
from nograd.agent.toolcall import CallError, parse_call
from nograd.agent.trajectory import Step, Trajectory
from nograd.tasks.family import Task, TaskFamily, ToolResult

STAGES = ("planner", "selector", "caller", "synthesizer")


@dataclass(frozen=True)
class TokenLimits:
    """Most tokens that each stage may write."""

    planner: int = 32
    selector: int = 16
    caller: int = 64
    synthesizer: int = 16


@dataclass(frozen=True)
class FourStageAgent:
    """Called with a task and a handle; returns the trajectory. scoring: ask for gold log-probabilities."""

    family: TaskFamily
    prompts: Prompts
    limits: TokenLimits = TokenLimits()
    attempts: int = 2
    scoring: bool = True

    async def __call__(self, task: Task, llm: Llm) -> Trajectory:
        plan = await llm.complete("planner", self.prompts.planner(task), max_tokens=self.limits.planner)
        tool, tool_score = await self._select(task, llm, plan.text.strip())
        steps = [Step("planner", plan.text), Step("selector", tool)]
        (result, attempts, tried), call_score = await asyncio.gather(
            self._call(task, llm, tool),
            self._score(llm, "caller", self.prompts.caller(task, task.tool), _call(task)),
        )
        steps += tried
        output = result.output if result.ok else f"error: {result.error}"
        answer, answer_score = await self._both(
            llm,
            "synthesizer",
            self.prompts.synthesizer(task, output),
            task.answer,
            self.limits.synthesizer,
            self.prompts.synthesizer(task, task.tool_output),
        )
        scores = {"tool": tool_score, "arguments": call_score, "answer": answer_score}
        return Trajectory(
            answer=answer.text.strip(),
            steps=(*steps, Step("synthesizer", answer.text)),
            checks={"selector": tool == task.tool, "caller": result.ok},
            attempts=attempts,
            log_probabilities={k: v for k, v in scores.items() if v is not None},
        )

    async def _select(self, task: Task, llm: Llm, plan: str) -> tuple[str, float | None]:
        messages = self.prompts.selector(task, plan)
        reply, score = await self._both(llm, "selector", messages, task.tool, self.limits.selector, messages)
        return _named_tool(reply.text, task.offered), score

    async def _call(self, task: Task, llm: Llm, tool: str) -> tuple[ToolResult, int, list[Step]]:
        """Up to `attempts` calls, each error fed back. An unknown tool is a failed call."""
        if tool not in task.offered:
            return ToolResult(ok=False, error=f"there is no tool {tool[:20]!r}"), 1, []
        messages = self.prompts.caller(task, tool)
        steps: list[Step] = []
        for attempt in range(1, self.attempts + 1):
            reply = await llm.complete("caller", messages, max_tokens=self.limits.caller)
            result = self._execute(task, tool, reply)
            steps.append(Step("caller", reply.text, result.output if result.ok else f"error: {result.error}"))
            if result.ok or attempt == self.attempts:
                return result, attempt, steps
            messages = self.prompts.retry(messages, reply.text, result.error)
        raise AssertionError("attempts is at least 1")

    def _execute(self, task: Task, tool: str, reply: Reply) -> ToolResult:
        call = parse_call(reply.text)
        if isinstance(call, CallError):
            return ToolResult(ok=False, error=call.message)
        return self.family.call(task, tool, call.arguments)

    async def _both(
        self, llm: Llm, stage: str, messages: Messages, target: str, limit: int, gold_messages: Messages
    ) -> tuple[Reply, float | None]:
        """A stage's completion and, at the same time, the score of its gold target."""
        return await asyncio.gather(
            llm.complete(stage, messages, max_tokens=limit), self._score(llm, stage, gold_messages, target)
        )

    async def _score(self, llm: Llm, stage: str, messages: Messages, target: str) -> float | None:
        if not self.scoring:
            return None
        return await llm.score(stage, messages, target)


def _call(task: Task) -> str:
    return gold_arguments(task.arguments)


def _named_tool(text: str, offered: tuple[str, ...]) -> str:
    """The offered tool that the selector named on its first line, or what it wrote."""
    line = (text.strip().splitlines() or [""])[0].strip().strip("`'\"*.").strip()
    return next((name for name in offered if name.casefold() == line.casefold()), line)
