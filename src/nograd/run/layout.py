"""The names of the files in a run directory.

config.toml                     the configuration, as resolved
environment.json                what made the run: versions, machine, git, model facts, configuration
resumed.jsonl                   one line per resumption (absent if there was none)
generations.jsonl               one line per generation; the line commits the generation
checkpoints/00007.safetensors   search state after generation 7, theta included
trajectories/first.jsonl        the center's trajectories in generation 0
trajectories/newest.jsonl       the same for the newest generation
evaluations/bfcl_heldout.jsonl  what `nograd evaluate` found on a task family, one line per generation
preflight.json                  what `nograd preflight` found, often before the run began
"""

from __future__ import annotations

from pathlib import Path

CONFIG = "config.toml"
ENVIRONMENT = "environment.json"
RESUMED = "resumed.jsonl"
GENERATIONS = "generations.jsonl"
PREFLIGHT = "preflight.json"
LOCK = ".lock"
OWNER = ".owner.json"


def checkpoint(root: Path, generation: int) -> Path:
    """The search state after this generation."""
    return root / "checkpoints" / f"{generation:05d}.safetensors"


def trajectories(root: Path, which: str) -> Path:
    """The center's trajectories; which: "first" or "newest"."""
    return root / "trajectories" / f"{which}.jsonl"


def evaluations(root: Path, family: str) -> Path:
    """The results of saved coefficients on a task family."""
    return root / "evaluations" / f"{family}.jsonl"


def holds_run(root: Path) -> bool:
    """Whether a run was started here; config.toml is the last file that starting one writes."""
    return (root / CONFIG).exists()
