"""The two example agents: their control flow on a scripted model, and whole short runs of the programs."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nograd
from nograd import Llm, Message, Reply, Task, Trajectory
from nograd.tasks.calculator import evaluate
from tiny_models import save_tiny_chat

FOLDER = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


REACT, RETRIEVE = load("react_calculator"), load("retrieve_then_answer")


class Script(Llm):
    """A model that says what it is told to, by stage and last message, and remembers its prompts."""

    def __init__(self, says: Callable[[str, str], str]) -> None:
        self.says = says
        self.asked: list[tuple[str, Sequence[Message]]] = []

    async def complete(self, stage: str, messages: Sequence[Message], *, max_tokens: int = 32) -> Reply:
        del max_tokens
        self.asked.append((stage, messages))
        return Reply(self.says(stage, messages[-1].content), "stop")

    async def score(self, stage: str, messages: Sequence[Message], target: str) -> float:
        self.asked.append((stage, messages))
        return -float(len(target))


def play(agent: Any, question: str, answer: str, says: Callable[[str, str], str]) -> tuple[Trajectory, Script]:
    script = Script(says)
    task = Task("t", question, answer, "", {}, "", ())
    return asyncio.run(agent(task, script)), script


def in_turn(*acts: str) -> Callable[[str, str], str]:
    """"act" says these one after the other, "think" thinks nothing of note."""
    left = list(acts)
    return lambda stage, _: left.pop(0) if stage == "act" else "hm"


@pytest.mark.parametrize(
    ("acts", "answer", "think", "act"),
    [
        (["Action: 3 * 12", "Action: 36 + 25", "Answer: 61"], "61", True, True),
        (["Action: 3 * 12 + 25", "Answer: 61 "], "61", True, True),
        (["Answer: 60"], "60", False, True),
        (["Action: 3 x 12", "Action: 36 + 25", "Answer: 61"], "61", True, False),
        (["I am not sure.", "Action: 36 + 25", "Answer: 61"], "61", True, False),
        (["Action: 1", "Action: 2", "Action: 3"], "", False, False),
    ],
)
def test_react_loops_until_it_answers(acts: list[str], answer: str, think: bool, act: bool) -> None:
    trajectory, script = play(REACT.agent, "What is it?", "61", in_turn(*acts))
    assert trajectory.answer == answer
    assert trajectory.checks == {"think": think, "act": act}
    assert [stage for stage, _ in script.asked] == ["think", "act"] * len(acts)
    assert [step.text for step in trajectory.steps if step.stage == "act"] == [text.strip() for text in acts]


def test_react_feeds_observations_and_errors_back() -> None:
    _, script = play(REACT.agent, "q?", "", in_turn("Action: 6 * 7", "Action: six", "Answer: 42"))
    said = [messages[-1].content for stage, messages in script.asked if stage == "think"]
    assert said[:2] == ["Question: q?", "Observation: 42"]
    assert said[2].startswith("Observation: error: ")
    last = script.asked[-1][1]
    assert [m.content for m in last[-5:-1]] == [
        "Question: q?\nThought: hm",
        "Action: 6 * 7",
        "Observation: 42\nThought: hm",
        "Action: six",
    ]


def test_react_scores_the_right_thoughts_in_the_right_conversation() -> None:
    trajectory, script = play(REACT.agent, "Multiply 3 by 12, then add 25.", "61", in_turn("Answer: 1"))
    scored = script.asked[2:]
    assert [stage for stage, _ in scored] == ["think"] * 3
    assert [messages[-1].content for _, messages in scored] == [
        "Question: Multiply 3 by 12, then add 25.",
        "Observation: 36",
        "Observation: 61",
    ]
    thoughts = ["Multiply 3 by 12.", "Add 25 and 36.", "The answer is 61."]
    assert list(trajectory.log_probabilities.values()) == [-float(len(thought)) for thought in thoughts]
    assert scored[2][1][-2].content == thoughts[1]


def test_react_tasks_are_what_the_calculator_says_and_differ_from_the_worked_ones() -> None:
    tasks = REACT.make_tasks()
    assert len({task["question"] for task in tasks}) == len(tasks) == 48
    first = {task["question"]: task["answer"] for task in tasks}
    assert first["Multiply 3 by 12, then add 25."] == evaluate("3 * 12 + 25") == "61"
    worked = {said.removeprefix("Question: ") for said, _, _ in REACT.WORKED}
    assert not worked & first.keys()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "town.sqlite"
    RETRIEVE.build_store(path)
    return path


def test_every_question_can_be_answered_from_its_passage(store: Path) -> None:
    questions = [question for _, question, _ in RETRIEVE.TOWN]
    assert len(set(questions)) == len(questions) == 40
    for passage, _, answer in RETRIEVE.TOWN:
        assert answer in passage
        assert RETRIEVE.search(store, passage) == passage
    shown = {text for _, _, text, _ in RETRIEVE.EXAMPLES}
    assert not shown & {passage for passage, _, _ in RETRIEVE.TOWN}


@pytest.mark.parametrize("query", ["", "?!", "zeppelin", 'lighthouse" OR "bakery', "text : lamp NEAR(", "é"])
def test_a_strange_query_finds_nothing_and_breaks_nothing(store: Path, query: str) -> None:
    assert RETRIEVE.search(store, query) == ""


def test_retrieval_asks_the_store_and_answers_from_the_passage(store: Path) -> None:
    passage, question, answer = RETRIEVE.TOWN[0]
    agent = RETRIEVE.Reader(store)

    def says(query: str) -> Callable[[str, str], str]:
        return lambda stage, last: query if stage == "query" else last.partition("\n")[0]

    found, script = play(agent, question, answer, says(" bakeries "))
    assert found.answer == passage, "what was retrieved is what the answerer sees"
    assert found.checks == {"query": True}
    assert found.log_probabilities == {"answer": -float(len(answer))}
    missed, script = play(agent, question, answer, says("lighthouse"))
    assert missed.checks == {"query": False}
    scored = script.asked[-1][1]
    assert scored[-1].content == f"{passage}\n{question}", "the gold answer is scored with the right passage"


def test_brief_answers() -> None:
    assert RETRIEVE.brief("Thorne", "The Thorne family.")
    assert not RETRIEVE.brief("Thorne", "The Thornes")
    assert not RETRIEVE.brief("Berta", "The fire engine is Berta.")


@pytest.mark.parametrize("name", ["react_calculator", "retrieve_then_answer"])
def test_the_agents_run_under_tune(
    name: str, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a model that answers nonsense, with short prompts: both stages get their coefficients, rates by stage
    are recorded."""
    module = load(name)
    examples = "WORKED" if name == "react_calculator" else "EXAMPLES"
    monkeypatch.setattr(module, examples, getattr(module, examples)[:1])
    monkeypatch.setattr(module, "TURNS", 2, raising=False)
    agent = module.agent if name == "react_calculator" else module.Reader(store)
    tasks = [{"question": "What is 1 plus 1?", "answer": "2"}]
    model = str(save_tiny_chat(tmp_path / "tiny", max_position_embeddings=4096))
    result = nograd.tune(
        agent,
        tasks,
        module.STAGES,
        out=tmp_path / "run",
        model=model,
        generations=1,
        pairs=1,
        progress=False,
        settings=["subspace.dim=4"],
    )
    (record,) = nograd.load_run(result.run_dir).generations
    assert record.modules == module.STAGES
    assert record.metrics[f"{module.STAGES[0]}_ok"] == 0.0
    assert record.success == 0.0


FEWER = {
    "react_calculator": "m.make_tasks = lambda made=m.make_tasks(): made[:6]",
    "retrieve_then_answer": "m.TOWN = m.TOWN[:10]",
}


@pytest.mark.real
@pytest.mark.parametrize("name", FEWER)
def test_the_programs_run(name: str, tmp_path: Path) -> None:
    """One small generation of the program itself, on a few of its tasks."""
    code = f"import {name} as m; {FEWER[name]}; m.main(out='run', generations=1, batch=3, pairs=2)"
    environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    shares = [float(value) for pair in re.findall(r"success (\S+) -> (\S+)", done.stdout) for value in pair]
    assert len(shares) == 4
    run = nograd.load_run(tmp_path / "run")
    assert -9 < run.generations[0].metrics["gold_log_probability"] < -0.05
    assert (run.theta[-1] != 0).any(axis=1).all(), "both stages moved"
