"""A ReAct agent with a calculator: think, act, observe, and again, until it answers or runs out of turns.

Run it with `python examples/react_calculator.py`; a few minutes. Stage "think" says what to calculate next, stage
"act" writes the calculation or the answer. What the calculator says goes back into the conversation, errors too.
Right thoughts are known here, so their log-probabilities guide the search as well (`shaping`): success alone says
little about the first of several steps.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import nograd
from nograd import Llm, Message, Step, Task, Trajectory
from nograd.tasks.calculator import CalculatorError, evaluate
from nograd.tasks.normalise import same_answer

STAGES = ("think", "act")
SETTINGS = ("search.sigma=0.1", "search.clip=0.2")
"""With two stages each coefficient weighs more than with four: the default σ of 0.3 wrecks most candidates."""
TURNS = 3
Turn = tuple[str, str, str]
"""What was said to the agent (the question, later an observation), its thought, and its act."""

WORKED: tuple[Turn, ...] = (
    ("Question: Multiply 6 by 14, then subtract 9.", "Multiply 6 by 14.", "Action: 6 * 14"),
    ("Observation: 84", "Subtract 9 from 84.", "Action: 84 - 9"),
    ("Observation: 75", "The answer is 75.", "Answer: 75"),
    ("Question: What is 25 plus 17?", "Add 25 and 17.", "Action: 25 + 17"),
    ("Observation: 42", "The answer is 42.", "Answer: 42"),
    ("Question: Subtract 8 from 51, then add 20.", "Subtract 8 from 51.", "Action: 51 - 8"),
    ("Observation: 43", "Add 20 and 43.", "Action: 20 + 43"),
    ("Observation: 63", "The answer is 63.", "Answer: 63"),
)  # fmt: skip

# Questions about three numbers, and how to answer each: thought and calculation; x is the observation before.
QUESTIONS = (
    ("Multiply {a} by {b}, then add {c}.", ("Multiply {a} by {b}.", "{a} * {b}"), ("Add {c} and {x}.", "{c} + {x}")),
    ("What is {c} minus {b}?", ("Subtract {b} from {c}.", "{c} - {b}")),
    ("Add {b} and {c}, then subtract {a}.", ("Add {b} and {c}.", "{b} + {c}"), ("Subtract {a} from {x}.", "{x} - {a}")),
    ("Subtract {a} from {c}, then add {b}.", ("Subtract {a} from {c}.", "{c} - {a}"),
     ("Add {b} and {x}.", "{b} + {x}")),
)  # fmt: skip
NUMBERS = ((3, 12, 25), (7, 15, 38), (4, 21, 30), (8, 13, 47), (5, 16, 29), (9, 14, 52), (6, 18, 41), (7, 24, 63),
           (4, 32, 55), (8, 17, 36), (3, 45, 28), (9, 22, 74))  # fmt: skip


def solve(question: str, steps: Sequence[tuple[str, str]], **numbers: object) -> tuple[Turn, ...]:
    """The right turns for a question."""
    turns: list[Turn] = []
    said = f"Question: {question.format(**numbers)}"
    for thought, pattern in steps:
        calculation = pattern.format(**numbers)
        turns.append((said, thought.format(**numbers), f"Action: {calculation}"))
        numbers["x"] = evaluate(calculation)
        said = f"Observation: {numbers['x']}"
    return (*turns, (said, f"The answer is {numbers['x']}.", f"Answer: {numbers['x']}"))


SOLVED = {
    question.format(a=a, b=b, c=c): solve(question, steps, a=a, b=b, c=c)
    for a, b, c in NUMBERS
    for question, *steps in QUESTIONS
}


async def agent(task: Task, llm: Llm) -> Trajectory:
    done: list[Turn] = []
    seen: list[str] = []
    said, answer = f"Question: {task.question}", ""
    for _ in range(TURNS):
        thought = (await llm.complete("think", think_prompt(done, said), max_tokens=16)).text.strip()
        act = (await llm.complete("act", act_prompt(done, said, thought), max_tokens=16)).text.strip()
        answer, observation = perform(act)
        done.append((said, thought, act))
        if answer:
            break
        seen.append(observation)
        said = f"Observation: {observation}"
    steps = [step for said, thought, act in done for step in (Step("think", thought, said), Step("act", act))]
    right = SOLVED.get(task.question, ())
    scores = await asyncio.gather(
        *(llm.score("think", think_prompt(right[:i], said), thought) for i, (said, thought, _) in enumerate(right))
    )
    checks = {
        "think": any(same_answer(task.answer, value) for value in seen),
        "act": answer != "" and not any(value.startswith("error") for value in seen),
    }
    gold = {f"thought {i}": score for i, score in enumerate(scores)}
    return Trajectory(answer, tuple(steps), checks, log_probabilities=gold)


def perform(act: str) -> tuple[str, str]:
    """(answer, "") if the agent answers, ("", observation) if it calculates or writes something else."""
    answer = re.search(r"Answer:\s*(.+)", act)
    if answer:
        return answer[1].strip(), ""
    action = re.search(r"Action:\s*(.+)", act)
    if not action:
        return "", "error: write Action: or Answer:"
    try:
        return "", evaluate(action[1])
    except CalculatorError as error:
        return "", f"error: {error}"


def think_prompt(done: Sequence[Turn], said: str) -> list[Message]:
    """The worked examples and the turns so far as "think" saw them, then what was said last."""
    talk = [Message("system", "Say what to calculate next.")]
    for asked, thought, _ in (*WORKED, *done):
        talk += [Message("user", asked), Message("assistant", thought)]
    return [*talk, Message("user", said)]


def act_prompt(done: Sequence[Turn], said: str, thought: str) -> list[Message]:
    """The same as "act" saw it."""
    talk = [Message("system", "Write the action for the thought, or the answer.")]
    for asked, idea, act in (*WORKED, *done):
        talk += [Message("user", f"{asked}\nThought: {idea}"), Message("assistant", act)]
    return [*talk, Message("user", f"{said}\nThought: {thought}")]


def make_tasks() -> list[dict[str, str]]:
    return [
        {"question": question, "answer": turns[-1][2].removeprefix("Answer: ")} for question, turns in SOLVED.items()
    ]


def main(out: str = "runs/react", generations: int = 10, batch: int = 16, pairs: int = 4) -> None:
    tasks = make_tasks()
    cut = len(tasks) * 2 // 3
    train, held_out = tasks[:cut], tasks[cut:]
    result = nograd.tune(
        agent,
        train,
        STAGES,
        out=out,
        generations=generations,
        batch=batch,
        pairs=pairs,
        shaping=0.5,
        settings=SETTINGS,
        resume=True,
    )
    for name, chosen in (("tuned on", train), ("held out", held_out)):
        before, after = result.evaluate(chosen)
        print(f"{len(chosen)} tasks {name}: success {before.success:.2f} -> {after.success:.2f}")


if __name__ == "__main__":
    main()
