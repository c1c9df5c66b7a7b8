"""The flags that say what to run, for the commands that take a run's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings; flags go over it.")]
Arm = Annotated[str | None, typer.Option(help="How the budget is split; see 'nograd arms'.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random.")]
Generations = Annotated[int | None, typer.Option(help="Steps of the search.")]
Pairs = Annotated[int | None, typer.Option(help="Mirrored pairs per generation: the budget.")]
Model = Annotated[
    str | None, typer.Option(help="A name of 'nograd models', a Hugging Face id, a folder or a .gguf file.")
]
DType = Annotated[str | None, typer.Option(help="auto, float32, bfloat16 or float16.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu or cuda.")]
TokenBudget = Annotated[
    int | None, typer.Option(help="Tokens whose keys and values are held at once (default: what memory allows).")
]
Tasks = Annotated[
    str | None, typer.Option(help="A task family, or a .jsonl file of your own; see 'nograd tasks --help'.")
]
Tools = Annotated[
    Path | None, typer.Option(metavar="FILE.py", help="The tools of a tasks file (default: nograd's own).")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any other setting; may be given several times."),
]

KEYS = {
    "arm": "search.arm",
    "seed": "seed",
    "generations": "search.generations",
    "pairs": "search.pairs",
    "model": "model.spec",
    "dtype": "model.dtype",
    "device": "execution.device",
    "track": "execution.track",
    "token_budget": "execution.token_budget",
}
"""Flag → setting."""


def overrides(
    settings: list[str] | None, tasks: str | None, tools: Path | None, **flags: str | int | None
) -> list[str]:
    """What was given, as settings over a configuration file; those of --set go last. flags: see KEYS."""
    from nograd.run.task_family import task_settings

    given = [f"{KEYS[flag]}={value}" for flag, value in flags.items() if value is not None]
    return [*given, *task_settings(tasks, tools), *(settings or [])]
