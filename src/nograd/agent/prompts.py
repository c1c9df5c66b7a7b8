"""The prompts of the four-stage agent: a short system text, worked examples as earlier turns, then the task.

Whatever does not change from task to task comes first, so that it is computed once per θ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nograd.llm.chat import Message
from nograd.tasks.family import Example, Task, TaskFamily, ToolSpec

_PLANNER = "Say in one short sentence how to find the answer."
_SELECTOR = "Copy the name of the tool that fits the task."
_CALLER = "Write the arguments for the tool as JSON."
_SYNTHESIZER = (
    "Give the final answer to the question, using the result of the tool. Reply with the answer only."
)


def gold_arguments(arguments: Mapping[str, Any]) -> str:
    """Arguments as the caller is to write them."""
    return json.dumps(arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Shots:
    """How many of the family's worked examples each stage is shown."""

    planner: int = 2
    selector: int = 6
    caller: int = 6
    synthesizer: int = 2


class Prompts:
    """The messages of every stage for one family."""

    def __init__(self, family: TaskFamily, shots: Shots = Shots()) -> None:
        self.family = family
        self.shots = shots
        offered = {task.offered for task in family.tasks} | {e.task.offered for e in family.examples}
        self.same_tools = len(offered) == 1

    def planner(self, task: Task) -> list[Message]:
        return self._turns(
            _PLANNER, self._examples(self.shots.planner), lambda e: (e.task.question, e.plan), task.question
        )

    def selector(self, task: Task, plan: str) -> list[Message]:
        system = _SELECTOR
        if self.same_tools:
            system = f"Which tool: {', '.join(task.offered)}?"
        return self._turns(
            system,
            self._examples(self.shots.selector),
            lambda e: (self._selector_turn(e.task, e.plan), e.task.tool),
            self._selector_turn(task, plan),
        )

    def caller(self, task: Task, tool: str) -> list[Message]:
        return self._turns(
            _CALLER,
            self._examples(self.shots.caller),
            lambda e: (self._caller_turn(e.task, e.task.tool), gold_arguments(e.task.arguments)),
            self._caller_turn(task, tool),
        )

    def retry(self, before: Sequence[Message], text: str, error: str) -> list[Message]:
        return [*before, Message("assistant", text), Message("user", f"Error: {error}. Try again.")]

    def synthesizer(self, task: Task, output: str) -> list[Message]:
        def turn(question: str, result: str) -> str:
            return f"Question: {question}\nResult: {result}"

        return self._turns(
            _SYNTHESIZER,
            self._examples(self.shots.synthesizer),
            lambda e: (turn(e.task.question, e.task.tool_output), e.task.answer),
            turn(task.question, output),
        )

    def _examples(self, count: int) -> Sequence[Example]:
        return list(self.family.examples)[:count]

    def _selector_turn(self, task: Task, plan: str) -> str:
        if self.same_tools:
            return f"{task.question}\nPlan: {plan}"
        tools = "\n".join(f"- {name}" for name in task.offered)
        return f"Tools:\n{tools}\nTask: {task.question}\nPlan: {plan}"

    def _caller_turn(self, task: Task, tool: str) -> str:
        spec = self._spec(tool)
        parameters = "\n".join(f"- {name}: {text}" for name, text in spec.parameters.items())
        return f"Tool: {spec.name}\n{parameters}\nTask: {task.question}"

    def _spec(self, tool: str) -> ToolSpec:
        spec = self.family.tool(tool)
        assert spec is not None, tool
        return spec

    @staticmethod
    def _turns(system: str, examples: Sequence[Example], shown: Any, asked: str) -> list[Message]:
        messages = [Message("system", system)]
        for example in examples:
            question, answer = shown(example)
            messages += [Message("user", question), Message("assistant", answer)]
        return [*messages, Message("user", asked)]
