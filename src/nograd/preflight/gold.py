"""Can the tasks be solved at all? Their gold targets through the family's own checker and the stages' limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.four_stage import FourStageAgent
from nograd.agent.prompts import gold_arguments
from nograd.agent.toolcall import CallError, parse_call
from nograd.preflight.finding import Finding
from nograd.preflight.setting import Setting, left_out
from nograd.tasks.family import Task, TaskFamily

MOST = 256
"""Tasks that are looked at, spread over the family."""
NAMED = 3
"""Tasks that a sentence names."""

TARGETS: dict[str, Callable[[Task], str]] = {
    "selector": lambda task: task.tool,
    "caller": lambda task: gold_arguments(task.arguments),
    "synthesizer": lambda task: task.answer,
}
"""What the stages of the four-stage agent are to write."""


def gold(setting: Setting) -> tuple[Finding, ...]:
    """Execute every task's gold call, as the caller would write it, and check its gold answer."""
    if setting.agent is None:
        return (left_out("gold", setting),)
    family = setting.agent.family
    tasks = _spread(family.tasks)
    problems = {task.id: problem for task in tasks if (problem := _problem(family, task)) is not None}
    figures = {"tasks": len(tasks), "failing": len(problems)}
    if not problems:
        sentence = f"the gold call and the gold answer of all {len(tasks)} tasks pass the family's own checker"
        return (Finding("gold", None, "ok", sentence, figures=figures),)
    named = "; ".join(f"{name}: {problem}" for name, problem in list(problems.items())[:NAMED])
    sentence = f"{len(problems)} of {len(tasks)} tasks fail with their own gold targets ({named})"
    advice = "correct these tasks or their checker: no agent can solve them"
    return (Finding("gold", None, "failed", sentence, advice, figures),)


def token_limits(setting: Setting) -> tuple[Finding, ...]:
    """Compare the tokens of every gold target with what its stage may write."""
    if setting.agent is None:
        return (left_out("token_limits", setting),)
    if not isinstance(setting.agent.agent, FourStageAgent):
        return (Finding("token_limits", None, "ok", "left out: what an own agent's stages are to write is not known"),)
    return tuple(_limit(setting.agent, setting.agent.agent, stage) for stage in TARGETS)


def _spread(tasks: Sequence[Task]) -> list[Task]:
    return [tasks[i * len(tasks) // MOST] for i in range(MOST)] if len(tasks) > MOST else list(tasks)


def _problem(family: TaskFamily, task: Task) -> str | None:
    if task.tool:
        call = parse_call(gold_arguments(task.arguments))
        if isinstance(call, CallError):
            return f"its call is refused ({call.message})"
        result = family.call(task, task.tool, call.arguments)
        if not result.ok:
            return f"its call fails ({result.error})"
        if result.output != task.tool_output:
            return f"its call returns {result.output[:40]!r}, not its tool_output {task.tool_output[:40]!r}"
    return None if family.succeeded(task, task.answer) else f"its answer {task.answer[:40]!r} is not accepted"


def _limit(evaluator: AgentEvaluator, agent: FourStageAgent, stage: str) -> Finding:
    limit = getattr(agent.limits, stage)
    tasks = _spread(evaluator.family.tasks)
    lengths = [len(evaluator.scheduler.chat.encode_text(TARGETS[stage](task))) for task in tasks]
    long, longest = sum(length > limit for length in lengths), max(lengths)
    figures = {"limit": limit, "longest": longest, "tasks": len(tasks), "too_long": long}
    if not long:
        sentence = f"the longest gold target has {longest} tokens, the limit is {limit}"
        return Finding("token_limits", stage, "ok", sentence, figures=figures)
    sentence = f"{long} of {len(tasks)} gold targets do not fit into {limit} tokens, the longest has {longest}"
    advice = f"set agent.token_limits.{stage} to {longest} or more"
    return Finding("token_limits", stage, "failed", sentence, advice, figures)
