"""`nograd init`: a folder with tasks, tools and settings that work, to be changed into one's own."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

FILES = ("README.md", "nograd.toml", "tasks.jsonl", "heldout.jsonl", "tools.py")
NEXT = (
    ("nograd tasks tasks.jsonl --tools tools.py", "check the tasks; no model is needed"),
    ("nograd preflight nograd.toml --out runs/shop", "look for what would fail in silence"),
    ("nograd run nograd.toml --out runs/shop", "tune: ten generations, a few minutes"),
    ("nograd show runs/shop", "what was learned"),
    ("nograd evaluate runs/shop --tasks heldout.jsonl", "tasks that were never tuned on"),
    ("nograd export runs/shop --out adapters", "a LoRA adapter for each stage"),
)
"""What to run in the new folder, and what for."""


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The new folder.")] = Path("my-agent"),
) -> None:
    """Write an example folder: tasks and tools of one's own, without code of nograd's.

    The agent of the example answers what goods of a small shop cost and how many are in stock. Change the tasks
    in tasks.jsonl and the Python functions in tools.py into your own; 'nograd tasks --help' describes both.

    \b
    Examples:
      nograd init
      nograd init shop
    """
    from nograd.cli.output import console
    from nograd.errors import ConfigError

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError(f"{directory} is not an empty folder; name another one, such as {directory}-2")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (directory / name).write_bytes(example(name))
    except OSError as error:
        raise ConfigError(
            f"cannot write {error.filename or directory}: {error.strerror}; name a folder that can be written"
        ) from error
    width = max(len(command) for command, _ in NEXT)
    steps = [f"  {command:<{width}}  # {purpose}" for command, purpose in NEXT]
    listing = "\n".join([f"wrote {', '.join(FILES)}; next:", f"  cd {shlex.quote(str(directory))}", *steps])
    console().print(listing, soft_wrap=True)


def example(name: str) -> bytes:
    """Content of a file of the example; those that no package data pattern names carry another ending here."""
    folder = resources.files("nograd.cli").joinpath("example")
    packed = name if name.endswith((".py", ".toml")) else f"{name}.j2"
    return folder.joinpath(packed).read_bytes()
