"""`nograd init`: the folder it writes works as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from cli_command import Command

from nograd.cli.app import COMMANDS
from nograd.cli.init import FILES, NEXT
from nograd.run.config_source import load_config
from nograd.run.task_family import task_family
from nograd.tasks.own.family import JsonlTasks, jsonl


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nograd: Command) -> Path:
    """The example, the current folder."""
    monkeypatch.chdir(tmp_path)
    assert nograd("init", "a/shop").status == 0
    monkeypatch.chdir("a/shop")
    return tmp_path / "a" / "shop"


def test_the_folder_holds_what_is_said(shop: Path) -> None:
    assert sorted(path.name for path in shop.iterdir()) == sorted(FILES)


def test_it_says_what_to_run_next(tmp_path: Path, nograd: Command) -> None:
    out = nograd("init", tmp_path / "my shop").out
    lines = [line.split("#")[0].strip() for line in out.splitlines()[1:]]
    assert lines == [f"cd '{tmp_path / 'my shop'}'", *(command for command, _ in NEXT)]
    for command in lines[1:]:
        assert shlex.split(command)[1] in COMMANDS


@pytest.mark.usefixtures("shop")
def test_its_files_are_in_order(nograd: Command) -> None:
    outcome = nograd("tasks", "tasks.jsonl", "--tools", "tools.py")
    assert (outcome.status, outcome.err) == (0, "")
    assert "every gold call works, the same twice" in outcome.out
    tuned = task_family(load_config("nograd.toml").tasks)
    heldout = jsonl("heldout.jsonl", "tools.py", "tasks.jsonl")
    assert isinstance(tuned, JsonlTasks)
    assert (len(tuned.tasks), len(heldout.tasks)) == (20, 16)
    assert {task.tool for task in tuned.tasks} == {e.task.tool for e in tuned.examples} == set(tuned.tools)
    questions = [task.question for task in (*tuned.tasks, *heldout.tasks, *(e.task for e in tuned.examples))]
    assert len(set(questions)) == len(questions)
    assert load_config("nograd.toml").tasks.batch <= len(tuned.tasks)


def test_its_tools_answer_and_object_in_words(shop: Path) -> None:
    tools = jsonl("tasks.jsonl", str(shop / "tools.py")).tools
    assert tools["price"].call({"item": "Lamps", "quantity": 3}).output == "72 euros"
    assert tools["stock"].call({"item": "shelves", "city": "Porto"}).output == "15 pieces"
    assert tools["price"].call({"item": "sofa", "quantity": 1}).error.startswith("unknown item 'sofa'; there is lamp")
    assert tools["price"].call({"item": "lamp", "quantity": 0}).error == "quantity must be at least 1"
    assert "must be 'Bergen', 'Lyon' or 'Porto'" in tools["stock"].call({"item": "lamp", "city": "Rome"}).error


def test_only_an_empty_folder_is_written_to(tmp_path: Path, nograd: Command) -> None:
    (tmp_path / "empty").mkdir()
    assert nograd("init", tmp_path / "empty").status == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for taken in (tmp_path / "empty", tmp_path / "empty" / "tools.py"):
        outcome = nograd("init", taken)
        assert outcome.status == 2
        assert f"{taken} is not an empty folder; name another one, such as {taken}-2" in outcome.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.real
@pytest.mark.usefixtures("shop")
def test_it_runs_as_it_is(nograd: Command) -> None:
    """A few tasks and one generation of the example's own settings with the embedded model."""
    short = ["--pairs", 1, "--generations", 1, "--set", "tasks.batch=4"]
    outcome = nograd("run", "nograd.toml", *short, "--out", "runs/shop", "--json")
    assert outcome.status == 0
    assert 0 <= outcome.last_json["zero_theta_success"] <= 1
    outcome = nograd("ask", "runs/shop", "How much do 11 lamps cost?")
    assert outcome.status == 0
    assert '"item": "lamp"' in outcome.out
