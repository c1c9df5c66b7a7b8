"""The entry point: runs a command and turns what went wrong into one sentence and an exit status."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from nograd.errors import NogradError

MISTAKE = 2
INTERRUPTED = 130


class StoppedError(Exception):
    """Ctrl-C, with a sentence that says how to go on."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `nograd ARGUMENTS` (default: those of this process) and return its exit status.

    0: done; 1: a check found a disagreement; 2: a mistake, explained on stderr; 130: stopped by Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = _show_warning
    try:
        return _run([argument for argument in given if argument != "--debug"])
    except NogradError as error:
        if "--debug" in given:
            raise
        return _say(f"error: {error}", MISTAKE)
    except StoppedError as stop:
        return _say(f"\n{stop}", INTERRUPTED)
    except KeyboardInterrupt:
        return _say("\nstopped", INTERRUPTED)


def _run(arguments: list[str]) -> int:
    """The status with which typer would have ended the process."""
    from nograd.cli.app import build

    try:
        build()(arguments, prog_name="nograd")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _say(sentence: str, status: int) -> int:
    print(sentence, file=sys.stderr)
    return status


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning is a sentence for the person at the terminal, not a source line."""
    del category, filename, lineno, line
    print(f"warning: {message}", file=file or sys.stderr)
