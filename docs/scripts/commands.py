"""Writes docs/commands.md from the commands' own help: `python docs/scripts/commands.py`."""

from __future__ import annotations

from pathlib import Path

import typer
from click.testing import CliRunner

from nograd.cli.app import COMMANDS, build

PAGE = Path(__file__).parents[1] / "commands.md"
COLUMNS = 100
INTRODUCTION = """# Commands

Each section is what `nograd COMMAND --help` prints.
"""


def render() -> str:
    """The page."""
    sections = [f"## nograd {name}\n\n```text\n{_help(name)}\n```\n" for name in COMMANDS]
    return "\n".join([INTRODUCTION, f"```text\n{_help()}\n```\n", *sections])


def _help(*command: str) -> str:
    application = typer.main.get_command(build())
    shown = CliRunner().invoke(application, [*command, "--help"], prog_name="nograd", terminal_width=COLUMNS)
    return "\n".join(line.rstrip() for line in shown.output.strip().splitlines())


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
