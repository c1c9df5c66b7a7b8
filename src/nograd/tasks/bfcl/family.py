"""The BFCL families: `bfcl` and `bfcl_echo`, each with a training and a held-out side.

A task's tool does no work: a call that the checker accepts is answered with a text to relay. That text is the
constant CORRECT in `bfcl`, as in the paper (section 5.10), and differs from task to task in `bfcl_echo`. Only an
accepted call hands it out, and the worked examples relay texts of their own, so that no prompt gives it away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from nograd.errors import ConfigError
from nograd.tasks.bfcl.checker import check
from nograd.tasks.bfcl.data import Entry, load_entries
from nograd.tasks.bfcl.examples import EXAMPLES
from nograd.tasks.bfcl.gold import gold_arguments
from nograd.tasks.bfcl.schema import feedback
from nograd.tasks.bfcl.spec import tool_spec
from nograd.tasks.bfcl.split import MAX_GOLD_CHARS, offered, split
from nograd.tasks.family import Example, Task, ToolResult, ToolSpec
from nograd.tasks.normalise import same_answer

CONSTANT = "CORRECT"
ECHO_WORDS = (
    "amber", "basil", "cedar", "coral", "ember", "falcon", "garnet", "harbor",
    "indigo", "jasper", "lemon", "maple", "ocean", "pearl", "raven", "velvet",
)  # fmt: skip
REFUSED = "the call was not accepted; read the question again and correct the arguments"


class Bfcl:
    """A side of the split as a task family.

    heldout: the held-out side, not the training one. echo: task-specific tool outputs. distractors: functions
    offered beside the right one. max_gold_chars: longest gold arguments, in characters of JSON, that a task
    may need. seed: of the split and the distractors.
    """

    def __init__(
        self,
        *,
        heldout: bool = False,
        echo: bool = False,
        distractors: int = 3,
        max_gold_chars: int = MAX_GOLD_CHARS,
        seed: int = 0,
    ) -> None:
        sides = split(load_entries(), seed=seed, max_gold_chars=max_gold_chars)
        side = sides.heldout if heldout else sides.training
        if not 0 <= distractors < len(side):
            raise ConfigError(f"distractors is {distractors}; this family allows 0 to {len(side) - 1}")
        examples = tuple(entry for entry, _ in EXAMPLES)
        self.name = ("bfcl_echo" if echo else "bfcl") + ("_heldout" if heldout else "")
        self.tasks: Sequence[Task] = tuple(
            _task(entry, echo, offered(entry, side, distractors=distractors, seed=seed)) for entry in side
        )
        self.examples: Sequence[Example] = tuple(
            Example(_task(entry, True, offered(entry, examples, distractors=distractors)), plan)
            for entry, plan in EXAMPLES
        )
        self._entries = {entry.id: entry for entry in (*side, *examples)}
        self._functions = {entry.name: entry.function for entry in self._entries.values()}

    def tool(self, name: str) -> ToolSpec | None:
        function = self._functions.get(name)
        return None if function is None else tool_spec(function)

    def call(self, task: Task, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """The checker's verdict on the call. The error of a failed one is what the tool's own schema says
        against it, or the same neutral sentence for every wrong value and wrong tool."""
        entry = self._entries[task.id]
        if check(entry.function, [{tool: dict(arguments)}], entry.ground_truth).valid:
            return ToolResult(True, output=task.tool_output)
        if tool not in task.offered:
            return ToolResult(False, error=f"there is no such tool; choose one of: {', '.join(task.offered)}")
        return ToolResult(False, error=feedback(self._functions[tool], arguments) or REFUSED)

    def succeeded(self, task: Task, answer: str) -> bool:
        return same_answer(answer, task.answer)


def _task(entry: Entry, echo: bool, names: tuple[str, ...]) -> Task:
    answer = echo_answer(entry.id) if echo else CONSTANT
    return Task(
        id=entry.id,
        question=entry.question,
        answer=answer,
        tool=entry.name,
        arguments=gold_arguments(entry),
        tool_output=f"The call succeeded. Reply with exactly this: {answer}",
        offered=names,
        relay=True,
    )


def echo_answer(task_id: str) -> str:
    """A word and a three-digit number, fixed by the sha256 of the task's id, such as "maple 274"."""
    number = int.from_bytes(sha256(task_id.encode()).digest()[:8])
    return f"{ECHO_WORDS[number % len(ECHO_WORDS)]} {100 + number // len(ECHO_WORDS) % 900}"
