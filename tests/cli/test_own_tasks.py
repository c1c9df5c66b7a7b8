"""A person's own tasks and tools on the command line: listed, checked, tuned on, resumed, evaluated."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_command import Command

from nograd.cli import main
from nograd.errors import RunError
from nograd.run.config_source import load_config
from nograd.run.evaluate import evaluate
from nograd.run.load import load_run
from nograd.run.rebuild import rebuild
from nograd.run.task_family import other_tasks, task_family, task_settings
from nograd.tasks.own.family import JsonlTasks

TOOLS = 'def add(a: int, b: int) -> int:\n    """Add two numbers.\n\n    a: the first"""\n    return a + b\n'
TINY = ["--pairs", 1, "--generations", 1, "--set", "subspace.dim=2", "--set", "tasks.batch=2"]
TINY += [f"--set=agent.token_limits.{stage}=3" for stage in ("planner", "selector", "caller", "synthesizer")]


def line(a: int, **more: Any) -> str:
    return json.dumps({"question": f"What is {a} plus 1?", "tool": "add", "arguments": {"a": a, "b": 1}} | more) + "\n"


def write(folder: Path) -> Path:
    """Tasks, held-out tasks, tools and settings that name them."""
    folder.mkdir(parents=True)
    (folder / "my.jsonl").write_text(line(0, example=True) + "".join(line(n) for n in range(1, 5)))
    (folder / "others.jsonl").write_text("".join(line(n) for n in range(10, 14)))
    (folder / "my_tools.py").write_text(TOOLS)
    (folder / "mine.toml").write_text('[tasks]\nfamily = "jsonl"\npath = "my.jsonl"\ntools = "./my_tools.py"\n')
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(write(tmp_path / "here"))
    return tmp_path / "here"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A folder with files, and a run on them beside it."""
    folder = write(tmp_path_factory.mktemp("own") / "files")
    run = ["run", folder / "mine.toml", "--model", tiny_model, "--dtype", "float32", *TINY, "--out", folder / "run"]
    assert main([str(argument) for argument in run]) == 0
    return folder


@pytest.fixture
def again(made: Path, tmp_path: Path) -> Path:
    """A copy of all that, in another place, the files' old places in the run's settings changed to the new."""
    folder = shutil.copytree(made, tmp_path / "moved")
    config = folder / "run" / "config.toml"
    config.write_text(config.read_text().replace(str(made), str(folder)))
    return folder


@pytest.mark.usefixtures("here")
def test_tasks_of_a_file_are_listed_with_its_tools(nograd: Command) -> None:
    outcome = nograd("tasks", "my.jsonl", "--tools", "my_tools.py")
    assert outcome.status == 0
    assert [text.split()[0] for text in outcome.out.splitlines() if text.startswith("line-")] == [
        f"line-{n}" for n in (2, 3, 4, 5)
    ]
    assert "a: integer: the first" in outcome.out
    assert outcome.out.endswith(
        "tasks: 4, worked examples: 1, tools: 1; every gold call works, the same twice\n"
    )
    assert not outcome.err


def test_a_tool_that_varies_is_warned_of(nograd: Command, here: Path) -> None:
    (here / "my_tools.py").write_text("_N = [0]\n" + TOOLS.replace("return", "_N[0] += 1; return _N[0] +"))
    outcome = nograd("tasks", "my.jsonl", "--tools", "my_tools.py")
    assert outcome.status == 0
    assert "warning: line-2: add returned '4', then '8' for the same arguments" in outcome.err
    assert "the same twice" not in outcome.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tasks", "my.jsonl"], "my.jsonl has 5 mistakes:\n  line 1, tool = 'add': unknown; known: calculator"),
        (["tasks", "--tools", "my_tools.py"], "--tools my_tools.py goes with a tasks file, not with no tasks"),
        (["tasks", "in_house", "--tools", "t.py"], "--tools t.py goes with a tasks file, not with in_house"),
        (["tasks", "nowhere.jsonl"], "cannot read the tasks file nowhere.jsonl"),
        (["run", "--tasks", "jsonl"], "the family jsonl needs a file; give --tasks my.jsonl"),
        (["run", "--tasks", "my.jsonl", "--tools", "my_tools.py"], "my.jsonl has 4 tasks; ask for at most that many"),
        (["run", "--tools", "my_tools.py"], "goes with the family jsonl, but tasks.family = 'in_house'; set tasks."),
        (["run", "mine.toml", "--tools", "no.py"], "no.py: No such file or directory; check the path"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_anything_is_loaded(
    arguments: list[str], sentence: str, nograd: Command, here: Path
) -> None:
    outcome = nograd(*arguments)
    assert outcome.status == 2
    assert sentence in outcome.err
    assert "loading" not in outcome.err
    assert not (here / "runs").exists()


def test_paths_are_relative_to_the_file_or_to_the_folder_one_is_in(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here.parent)
    tasks = load_config("here/mine.toml").tasks
    assert (tasks.path, tasks.tools) == (str(here / "my.jsonl"), str(here / "my_tools.py"))
    tasks = load_config("here/mine.toml", ["tasks.path=x.jsonl"]).tasks
    assert (tasks.path, tasks.tools) == (str(here.parent / "x.jsonl"), str(here / "my_tools.py"))
    tasks = load_config("here/mine.toml", task_settings("in-house", None)).tasks
    assert (tasks.family, tasks.path, tasks.tools) == ("in-house", None, None)
    tasks = load_config(None, task_settings("here/my.jsonl", Path("here/my_tools.py"))).tasks
    assert len(task_family(tasks).tasks) == 4


def test_a_run_names_its_files_by_hash(made: Path) -> None:
    run = load_run(made / "run")
    facts = run.environment["identity"]["facts"]
    built = task_family(run.config.tasks)
    assert isinstance(built, JsonlTasks)
    assert {role: facts[role] for role in built.hashes} == built.hashes
    assert len(run.trajectories("first")) == 2


def test_a_run_goes_on_with_the_same_files_elsewhere(again: Path, made: Path) -> None:
    evaluator = rebuild(load_run(again / "run"))
    assert [task.answer for task in evaluator.family.tasks] == ["2", "3", "4", "5"]
    assert str(made) not in (again / "run" / "config.toml").read_text()


@pytest.mark.parametrize("name", ["my.jsonl", "my_tools.py"])
def test_a_changed_file_is_refused(name: str, again: Path, nograd: Command) -> None:
    with (again / name).open("a") as file:
        file.write("\n")
    role = {"my.jsonl": "tasks_file", "my_tools.py": "tools_file"}[name]
    with pytest.raises(RunError, match=rf"facts\.tasks was .*facts\.{role} was "):
        rebuild(load_run(again / "run"))
    for command in (["ask", again / "run", "What is 1 plus 1?"], ["run", "--resume", again / "run"]):
        outcome = nograd(*command)
        assert (outcome.status, f"facts.{role} was" in outcome.err) == (2, True)


def test_held_out_tasks_are_asked_as_those_of_the_run(again: Path, nograd: Command) -> None:
    run = load_run(again / "run")
    others = other_tasks([run], str(again / "others.jsonl"))
    assert others.examples == task_family(run.config.tasks).examples
    assert len(others.tasks) == 4
    outcome = nograd("evaluate", again / "run", "--tasks", again / "others.jsonl", "--json")
    assert (outcome.status, outcome.last_json["family"]) == (0, "jsonl_others")
    (done,) = evaluate([load_run(again / "run")], others)
    assert [row["task"] for row in done.records[1].outcomes] == [task.id for task in others.tasks]


def test_results_are_not_taken_for_those_of_a_changed_file(again: Path) -> None:
    run = load_run(again / "run")
    evaluate([run], other_tasks([run], str(again / "others.jsonl")))
    text = (again / "others.jsonl").read_text()
    (again / "others.jsonl").write_text(text.replace('"b": 1}', '"b": 1}, "check": {"contains": "11"}', 1))
    with pytest.raises(RunError, match="was made with other tasks; delete it to evaluate again"):
        evaluate([run], other_tasks([run], str(again / "others.jsonl")))


def test_the_runs_own_file_and_other_tools_bring_their_own_examples(again: Path) -> None:
    run = load_run(again / "run")
    assert len(other_tasks([run], str(again / "my.jsonl")).tasks) == 4
    (again / "other_tools.py").write_text(TOOLS)
    with pytest.warns(UserWarning, match="its first 1 tasks are shown"):
        own = other_tasks([run], str(again / "others.jsonl"), str(again / "other_tools.py"))
    assert [example.task.id for example in own.examples] == ["line-1"]
