"""Real terminal output as SVG: `python docs/pictures/terminal.py FOLDER [NAME…]` runs commands of SHOWN in FOLDER.

FOLDER has what docs/first-run.md, docs/own-tasks.md and docs/statistics.md make: `my-agent/` with its runs, and
`sweeps/main`. Nothing is edited. A command's stdout goes to a terminal of its own; what it says on stderr, as to a
log, is shown before it or left out.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from typing import NamedTuple

from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
FONT = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
"""The rules by which rich would load a font from a network."""
COLOURS = ["1f2933", "b91c1c", "047857", "b45309", "1d4ed8", "7e22ce", "0e7490", "4b5563"]
"""Colours of a terminal, from black to white, dark enough for a light ground."""


def colour(code: str) -> tuple[int, int, int]:
    """Red, green and blue of RRGGBB."""
    red, green, blue = bytes.fromhex(code)
    return red, green, blue


THEME = TerminalTheme(colour("fafafa"), colour("1f2933"), [colour(code) for code in COLOURS])


class Shown(NamedTuple):
    """folder: below FOLDER, where the command is started. columns: width of the terminal. notes: show
    stderr, too."""

    folder: str
    command: str
    columns: int
    notes: bool = False


SHOWN = {
    "show": Shown("my-agent", "nograd show runs/shop", 84),
    "run": Shown("my-agent", "nograd run nograd.toml --seed 4", 84, notes=True),
    "preflight": Shown(
        "my-agent", "nograd preflight nograd.toml --set subspace.basis=random --set subspace.injection=0.03", 100
    ),
    "compare": Shown(".", "nograd compare sweeps/main/uniform sweeps/main/random", 112),
}


def output(shown: Shown, folder: Path) -> str:
    """What the command writes to a terminal, with its escape sequences."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, shown.columns, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    words = [str(Path(sys.executable).parent / "nograd"), *shlex.split(shown.command)[1:]]
    with (
        tempfile.TemporaryFile() as notes,
        subprocess.Popen(words, cwd=folder / shown.folder, stdout=theirs, stderr=notes, env=environment),
    ):
        os.close(theirs)
        written = bytearray()
        while chunk := _read(ours):
            written += chunk
        os.close(ours)
        notes.seek(0)
        said = notes.read() if shown.notes else b""
    return (said + written).decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    """The next bytes; none when the program has closed its end, which Linux calls an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def picture(shown: Shown, written: str, name: str) -> str:
    """The command and its output as SVG."""
    console = Console(record=True, width=shown.columns, file=io.StringIO(), highlight=False, emoji=False)
    console.print(Text(f"$ {shown.command}", style="bold"), soft_wrap=False)
    console.print(Text.from_ansi(written.rstrip()))
    code_format = FONT.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", "monospace")
    return console.export_svg(title="", theme=THEME, code_format=code_format, unique_id=f"nograd-{name}")


if __name__ == "__main__":
    for name in sys.argv[2:] or SHOWN:
        written = output(SHOWN[name], Path(sys.argv[1]))
        (HERE / f"{name}.svg").write_text(picture(SHOWN[name], written, name), encoding="utf-8")
