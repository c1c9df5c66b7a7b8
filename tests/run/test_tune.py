"""Tuning one's own agent: any async code on one's own tasks, on a tiny model that answers nonsense."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import nograd
from nograd import Llm, Message, Step, Task, Trajectory
from nograd.errors import ConfigError, NogradError, RunError, TaskError
from nograd.run.generation import GenerationRecord
from nograd.run.own_agent import own_reward
from nograd.run.own_tasks import own_tasks, source_hash
from nograd.run.tune import tune
from nograd.tasks.normalise import same_answer
from tiny_models import save_tiny_chat

TASKS = [
    {"question": question, "answer": answer} for question, answer in (("a?", "a"), ("b?", "b"), ("c?", "c"))
]
STAGES = ["first", "second"]
README = Path(__file__).parents[2] / "README.md"


async def two_stages(task: Task, llm: Llm) -> Trajectory:
    """A branch, a loop and a score: nothing the library knows of."""
    draft = await llm.complete("first", [Message("user", task.question)], max_tokens=3)
    turn = [Message("user", task.question + draft.text)]
    answer = await llm.complete("second", turn, max_tokens=2)
    gold = await llm.score("second", turn, task.answer)
    steps = (Step("first", draft.text), Step("second", answer.text))
    return Trajectory(answer.text, steps, {"first": len(draft.text) > 1}, log_probabilities={"answer": gold})


async def one_text(task: Task, llm: Llm) -> str:
    return (await llm.complete("first", [Message("user", task.question)], max_tokens=2)).text


async def no_answer(task: Task, llm: Llm) -> Any:
    del task, llm


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture
def small(model: str, tmp_path: Path) -> Callable[..., Any]:
    """tune with small settings."""
    defaults: dict[str, Any] = {
        "out": tmp_path / "run",
        "model": model,
        "generations": 2,
        "pairs": 2,
        "progress": False,
        "settings": ["subspace.dim=4", "model.dtype=float32"],
    }
    return lambda agent, tasks=TASKS, stages=STAGES, **options: tune(
        agent, tasks, stages, **{**defaults, **options}
    )


def test_an_agent_is_tuned_on_gold_log_probabilities(small: Callable[..., Any], tmp_path: Path) -> None:
    seen: list[GenerationRecord] = []
    result = small(two_stages, shaping=0.5, progress=seen.append)
    assert result.theta.shape == (2, 4)
    assert np.abs(result.theta).max() > 0, "log-probabilities alone move the coefficients"
    assert [record.generation for record in seen] == [0, 1]
    assert result.summary.generations == 2
    assert result.summary.requests_computed < result.summary.requests_asked
    record = nograd.load_run(tmp_path / "run")
    assert record.modules == ("first", "second")
    assert np.array_equal(record.theta[-1], result.theta)


def test_ask_shows_both_agents(small: Callable[..., Any]) -> None:
    result = small(two_stages, shaping=0.5, settings=["subspace.dim=4", "search.clip=inf", "search.lr=300.0"])
    untouched, tuned = result.ask("a?")
    assert [step.stage for step in untouched.steps] == STAGES
    assert untouched.steps != tuned.steps, "a huge step changes what a random model says"


def test_a_free_question_has_no_gold_to_score(small: Callable[..., Any]) -> None:
    async def scores_gold(task: Task, llm: Llm) -> Trajectory | str:
        return await two_stages(task, llm) if task.answer else "free"

    result = small(scores_gold, shaping=0.5, generations=1)
    assert result.ask("x?").tuned.answer == "free"


def test_an_agent_may_return_a_text(small: Callable[..., Any]) -> None:
    assert small(one_text, stages=["first"]).theta.shape == (1, 4)


def test_check_reward_and_blame_are_the_callers_own(small: Callable[..., Any]) -> None:
    result = small(
        two_stages,
        check=lambda gold, answer: gold == "a" and answer != gold,
        reward=lambda _, success: 7.0 if success else 0.0,
        blame=lambda *_: (1.0, 0.0),
    )
    (first, _) = nograd.load_run(result.run_dir).generations
    assert first.success == pytest.approx(1 / 3)
    assert first.reward == pytest.approx(7 / 3)
    assert first.blame == (1.0, 0.0)


def test_resumed_only_with_the_same_agent_tasks_and_settings(small: Callable[..., Any]) -> None:
    whole = small(two_stages)
    again = small(two_stages, resume=True)
    assert np.array_equal(again.theta, whole.theta)
    with pytest.raises(RunError, match="already holds a run"):
        small(two_stages)
    with pytest.raises(RunError, match=r"facts\.agent was"):
        small(one_text, resume=True)
    with pytest.raises(RunError, match=r"facts\.tasks was"):
        small(two_stages, [*TASKS[:2], {"question": "d?", "answer": "d"}], resume=True)
    with pytest.raises(RunError, match=r"search\.pairs was 2 and is now 3"):
        small(two_stages, pairs=3, resume=True)


def test_the_command_line_says_where_to_resume(
    small: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    from nograd.cli import main

    result = small(one_text, stages=["first"])
    assert main(["run", "--resume", str(result.run_dir)]) == 2
    assert "go on with it there: nograd.tune(" in capsys.readouterr().err
    assert main(["ask", str(result.run_dir), "a?"]) == 2
    assert "returns the tuned agent, with .ask(question) and .evaluate(tasks)" in capsys.readouterr().err
    assert main(["evaluate", str(result.run_dir), "--tasks", "in_house"]) == 2
    assert "lives in the Python program that called nograd.tune" in capsys.readouterr().err


def test_show_has_the_rates_of_the_own_stages(
    small: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from nograd.cli import main
    from nograd.report.curves import draw_learning_curve

    def stop(record: GenerationRecord) -> None:
        if record.generation == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(two_stages, generations=3, progress=stop)
    assert main(["show", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert "tool_accuracy" not in shown, "it means nothing for this agent"
    assert re.search(r"^first_ok +[01]\.\d\d", shown, re.MULTILINE)
    assert "second_ok" not in shown, "it has no check"
    assert "2 of 3 generations; go on with: nograd.tune(…, out=" in shown
    picture = draw_learning_curve(nograd.load_run(tmp_path / "run"), tmp_path / "curve.svg").read_text()
    assert "first: check passed" in picture


def test_both_agents_on_other_tasks(small: Callable[..., Any]) -> None:
    result = small(two_stages, check=lambda gold, answer: gold != "wrong" and bool(answer or gold))
    scores = result.evaluate([{"question": "x?", "answer": "right"}, {"question": "y?", "answer": "wrong"}])
    assert (scores.untouched.success, scores.tuned.success) == (0.5, 0.5)
    (first, *_) = nograd.load_run(result.run_dir).generations
    assert result.evaluate(TASKS).untouched.metrics["first_ok"] == first.metrics["first_ok"]
    with pytest.raises(TaskError, match="unknown keys"):
        result.evaluate([{"question": "x?", "answer": "a", "gold": ""}])


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"tasks": []}, TaskError, "no tasks to tune on"),
        ({"tasks": [{"question": "a?"}]}, TaskError, "task 0 has no answer as text"),
        ({"tasks": [{"question": 1, "answer": "a"}]}, TaskError, "task 0 has no question as text"),
        ({"tasks": [{"question": "a", "answer": "a", "gold": 1}]}, TaskError, "unknown keys"),
        ({"tasks": [{"id": "x", "question": "a", "answer": "a"}] * 2}, TaskError, "the id 'x'"),
        ({"stages": []}, ConfigError, "distinct names"),
        ({"stages": "first"}, ConfigError, "distinct names"),
        ({"stages": ["a", "a"]}, ConfigError, "distinct names"),
        ({"stages": ["first"]}, ConfigError, "unknown stage 'second'"),
        ({"batch": 4}, ConfigError, "batch of 4 tasks cannot be drawn from 3"),
        ({"settings": ["subspace.dim=33"]}, ConfigError, "the largest dim that fits is"),
        ({"settings": ["search.sgima=1"]}, ConfigError, "search.sigma"),
    ],
)
def test_mistakes_are_sentences(
    change: dict[str, Any], error: type[NogradError], sentence: str, small: Callable[..., Any]
) -> None:
    with pytest.raises(error, match=sentence):
        small(two_stages, **change)


def test_what_the_agent_must_return(small: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"returned None; it must return a text or a nograd\.Trajectory"):
        small(no_answer)
    with pytest.raises(ConfigError, match="the agent returned none"):
        small(one_text, stages=["first"], shaping=0.5)


def test_what_agent_reward_and_blame_return_is_checked(small: Callable[..., Any]) -> None:
    async def strange_check(task: Task, llm: Llm) -> Trajectory:
        del task, llm
        return Trajectory("", checks={"frist": True})

    def not_async(task: Task, llm: Llm) -> str:
        del llm
        return task.answer

    with pytest.raises(ConfigError, match=r"unknown stage in a trajectory's checks 'frist'; did you mean 'first'\?"):
        small(strange_check)
    with pytest.raises(ConfigError, match="define it with `async def`"):
        small(not_async)
    with pytest.raises(ConfigError, match="the reward function returned None; it must return a number"):
        small(two_stages, reward=lambda *_: None)
    with pytest.raises(ConfigError, match="the blame function returns must be 2 non-negative shares"):
        small(two_stages, blame=lambda *_: (1.0,))


def test_tools_that_hang_end_the_run(small: Callable[..., Any]) -> None:
    async def hanging(task: Task, llm: Llm) -> str:
        del task, llm
        await asyncio.sleep(60)
        return ""

    with pytest.raises(RunError, match=r"rollouts wait for hanging \(test_tune\.py, line \d+\).*raise io_timeout"):
        small(hanging, io_timeout=0.1)


def test_errors_of_the_agent_pass_through_and_block_nothing(small: Callable[..., Any]) -> None:
    async def broken(task: Task, llm: Llm) -> str:
        del llm
        raise ZeroDivisionError(task.id)

    with pytest.raises(ZeroDivisionError, match="own-") as caught:
        small(broken)
    assert f"task {caught.value.args[0]!r}, before any stage was asked" in caught.value.__notes__[0]
    assert small(two_stages).summary.generations == 2, "the corrected agent starts in the same directory"


def test_a_running_event_loop_is_a_sentence(small: Callable[..., Any]) -> None:
    async def notebook() -> None:
        small(two_stages)

    with pytest.raises(ConfigError, match=r"asyncio\.to_thread"):
        asyncio.run(notebook())


def test_own_tasks_keep_what_they_are_given() -> None:
    task = Task("t", "q", "a", "tool", {"x": 1}, "out", ("tool",))
    family = own_tasks([task, {"question": "b?", "answer": "B"}], same_answer)
    assert family.tasks[0] is task
    assert (family.tasks[1].id, family.succeeded(family.tasks[1], " b. ")) == ("own-01", True)
    assert (family.tool("tool"), family.call(task, "tool", {}).ok) == (None, False)


def test_source_hash_tells_code_apart() -> None:
    class Callable_:  # noqa: N801
        async def __call__(self, task: Task, llm: Llm) -> str: ...

    hashes = {source_hash(code) for code in (two_stages, one_text, Callable_())}
    assert len(hashes) == 3
    assert source_hash(partial(two_stages, llm=None)) == source_hash(two_stages)
    assert source_hash(same_answer) == "nograd.tasks.normalise.same_answer"
    with pytest.raises(ConfigError, match="define it in a file"):
        source_hash(eval("lambda gold, answer: True"))


@given(st.booleans(), st.dictionaries(st.sampled_from("abcd"), st.booleans()), st.integers(1, 4))
@hypothesis_settings(deadline=None)
def test_own_reward_is_the_papers_for_its_stages(
    success: bool, checks: dict[str, bool], attempts: int
) -> None:
    value = own_reward(Trajectory("", (), checks, attempts), success)
    assert value == pytest.approx(success + 0.15 * sum(checks.values()) - 0.03 * (attempts - 1))


def test_public_names_are_lazy_and_all_there() -> None:
    code = "import nograd, sys; print(sorted({'torch', 'numpy', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert all(getattr(nograd, name) for name in nograd.__all__)
    with pytest.raises(AttributeError, match="no attribute 'tuen'"):
        _ = nograd.tuen


def readme_example() -> str:
    """The longest Python block of the README."""
    return max(re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL), key=len)


@pytest.mark.real
def test_the_readmes_example_runs(tmp_path: Path) -> None:
    source = readme_example()
    assert len(source.splitlines()) <= 45
    small = re.sub(r"generations=\d+", "generations=1, pairs=1, batch=4", source)
    assert small != source
    (tmp_path / "example.py").write_text(small, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert " -> " in done.stdout
    assert "generation 1/1: success" in done.stderr
