"""Runs the command lines of the documentation, or checks them without running."""

from __future__ import annotations

import io
import json
import shlex
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import typer
from doc_blocks import ROOT, Block

from nograd.cli.app import build
from nograd.cli.main import main


@dataclass(frozen=True)
class Shown:
    """A command with the output that the page shows, None if it shows none."""

    line: str
    output: str | None


def commands(block: Block) -> list[Shown]:
    """Of a shell block every line that is more than a comment; of a console block what follows "$ "."""
    if block.language == "shell":
        lines = [line for line in block.text.splitlines() if shlex.split(line, comments=True)]
        return [Shown(line, None) for line in lines]
    prompts = block.text.removeprefix("$ ").split("\n$ ")
    assert block.text.startswith("$ "), f"{block.place}: a console block begins with a prompt"
    return [Shown(line, output.rstrip() or None) for line, _, output in (prompt.partition("\n") for prompt in prompts)]


def run(shown: Shown, status: int, server: str) -> None:
    """Run it in this process; compare exit status and output."""
    program, *words = _words(shown.line)
    if program == "curl":
        return _post(words, server)
    assert program == "nograd", f"cannot run {program}"
    written = io.StringIO()
    with redirect_stdout(written), redirect_stderr(written):
        found = main(words)
    assert found == status, f"{shown.line} ended with {found}:\n{written.getvalue()}"
    if shown.output is not None:
        assert same_output(shown.output, written.getvalue()), f"{shown.line} printed\n{written.getvalue()}"
    return None


def same_output(expected: str, found: str) -> bool:
    """Line by line, spaces at the end aside; a line "…" stands for any number of lines."""
    wanted, lines = ([line.rstrip() for line in text.strip().splitlines()] for text in (expected, found))
    if "…" not in wanted:
        return wanted == lines
    gap = wanted.index("…")
    head, tail = wanted[:gap], wanted[gap + 1 :]
    return lines[:gap] == head and (not tail or lines[-len(tail) :] == tail) and len(lines) >= gap + len(tail)


def check(line: str) -> None:
    """Whether the command would start: what it names is there, and its options are understood."""
    program, *words = _words(line)
    if program == "make":
        targets = {each.partition(":")[0] for each in (ROOT / "Makefile").read_text("utf-8").splitlines()}
        assert set(words) <= targets, f"{line}: no such target"
    elif program == "python":
        compile((ROOT / words[0]).read_text("utf-8"), words[0], "exec")
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
        assert words[1].removeprefix("nograd[").removesuffix("]") in extras, line
    elif program == "nograd":
        _check_nograd(words)
    else:
        assert program in ("cd", "source"), f"cannot check {program}"


def _check_nograd(words: list[str]) -> None:
    """A run or sweep says what it would do; of any other command the options are parsed."""
    if words[0] in ("run", "sweep") and not {"--resume", "--source", "--dry-run"} & set(words):
        run(Shown(shlex.join(["nograd", *words, "--dry-run"]), None), 0, "")
        return
    group: Any = typer.main.get_command(build())
    command = group.commands.get(words[0])
    assert command is not None, f"there is no nograd {words[0]}"
    try:
        command.make_context(words[0], words[1:])
    except Exception as error:
        raise AssertionError(f"nograd {shlex.join(words)}: {error}") from error


def _words(line: str) -> list[str]:
    """Without the comment, and without the file that the output goes to."""
    words = shlex.split(line, comments=True)
    return words[: words.index(">")] if ">" in words else words


def _post(words: list[str], server: str) -> None:
    """What curl would send, to the server of the test."""
    url = words[0].replace("http://127.0.0.1:8000", server)
    assert words[1:3] == ["-H", "Content-Type: application/json"]
    assert words[3] == "-d"
    answer = httpx.post(url, json=json.loads(words[4]), timeout=60, verify=False)
    assert answer.status_code == 200, answer.text


def written(block: Block, folder: Path) -> Path:
    """The file that a block with a title is."""
    path = folder / block.title
    path.write_text(block.text, encoding="utf-8")
    return path
