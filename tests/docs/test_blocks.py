"""Every fenced block of the README and of docs/ is run, or checked without running; see doc_blocks."""

from __future__ import annotations

import io
import tomllib
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import PAGES, Block, blocks
from doc_commands import check, commands, run, same_output, written

from nograd.errors import TaskError
from nograd.run.config_source import load_config
from nograd.study.plan_file import read_plan
from nograd.tasks.own.family import jsonl

ADDRESS = "http://127.0.0.1:8000"
MODEL_PAGES = tuple(page for page in PAGES if '{run="model"}' in page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, folder: Path, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("server") if ADDRESS in page.read_text("utf-8") else ADDRESS
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.run != "model":
            perform(block, folder, names, server)


@pytest.mark.real
@pytest.mark.parametrize("page", MODEL_PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("folder")
def test_page_with_the_model(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.language == "python" and not block.title:
            execute(block, names, ADDRESS)


def perform(block: Block, folder: Path, names: dict[str, Any], server: str) -> None:
    """Whatever its language asks for."""
    if block.language in ("shell", "console"):
        for shown in commands(block):
            if block.run == "dry":
                check(shown.line)
            else:
                run(shown, int(block.attributes.get("status", 0)), server)
    elif block.language == "python" and block.title:
        compile(written(block, folder).read_text("utf-8"), block.place, "exec")
    elif block.language == "python":
        execute(block, names, server)
    elif block.language == "toml":
        load_toml(block, folder)
    elif block.language == "jsonl":
        load_jsonl(block, folder)


def execute(block: Block, names: dict[str, Any], server: str) -> None:
    """Run it from a file, among the names of the blocks before it; compare what it prints."""
    path = Path(f"{block.place}.py").absolute()
    path.write_text(block.text.replace(ADDRESS, server), encoding="utf-8")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(path.read_text("utf-8"), str(path), "exec"), names)
    if block.expected is not None:
        assert same_output(block.expected, printed.getvalue()), f"{block.place} printed\n{printed.getvalue()}"


def load_toml(block: Block, folder: Path) -> None:
    """As a plan if it has arms, else as a run's configuration."""
    values = tomllib.loads(block.text)
    if block.attributes.get("check") == "parsed":
        return
    path = written(block, folder)
    if "arms" in values:
        assert read_plan(path).plan.arms
    else:
        assert load_config(path, [])


def load_jsonl(block: Block, folder: Path) -> None:
    """With the tools that it names, as nograd does."""
    path, tools = written(block, folder), block.attributes.get("tools")
    if block.attributes.get("check") == "refused":
        with pytest.raises(TaskError):
            jsonl(str(path), tools)
    else:
        assert jsonl(str(path), tools).tasks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```\nls\n```", "a fence says"),
        ("```shell\nnograd run\n```", "must say run="),
        ('```shell {run="perhaps"}\nnograd run\n```', "must say run="),
        ('```python {cheap="yes"}\n1\n```', "no attribute cheap"),
        ("```yaml\na: 1\n```", "a fence says"),
    ],
)
def test_unmarked_blocks_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(ValueError, match=message):
        blocks(tmp_path / "page.md")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "line",
    [
        "nograd run --sed 3", "nograd runn", "nograd sweep no-such-plan", "make nothing", "python examples/no.py",
        "nograd run --set search.sgima=1", "nograd show --jsn runs/demo", "nograd show",
        "pip install 'nograd[everything]'", "rm -r runs",
    ],
)  # fmt: skip
def test_a_command_that_would_not_start_is_noticed(line: str) -> None:
    with pytest.raises((AssertionError, OSError)):
        check(line)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('```console {run="yes"}\n$ nograd arms\nno such output\n```', "printed"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```", "printed"),
        ('```shell {run="yes"}\nnograd tasks no.jsonl\n```', "ended with 2"),
    ],
)
def test_what_a_page_shows_wrongly_is_noticed(folder: Path, text: str, problem: str) -> None:
    (folder / "page.md").write_text(text)
    (block,) = blocks(folder / "page.md")[:1]
    with pytest.raises(AssertionError, match=problem):
        perform(block, folder, {}, ADDRESS)
