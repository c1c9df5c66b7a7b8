"""What made a run: versions, machine, the state of the source tree, the model, the configuration."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from nograd.run.config import RunConfig, results_bearing, results_hash
from nograd.run.evaluators import BUILDERS
from nograd.search.arms import SCHEMES, parse_arm
from nograd.tasks.registry import FAMILIES

LIBRARIES = ("nograd", "torch", "numpy", "transformers", "tokenizers", "safetensors")


def environment(config: RunConfig, identity: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON-able record.

    identity: what results depend on beyond the configuration (see `run.resume`). machine: what the evaluator
    knows of the hardware it resolved to, e.g. device and threads; goes over what is found here."""
    return {
        "config": results_bearing(config),
        "config_hash": results_hash(config),
        "identity": dict(identity),
        "versions": {"python": platform.python_version()}
        | {name: _version(name) for name in LIBRARIES}
        | _plugged_packages(config),
        "machine": {
            "platform": platform.platform(),
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "threads": config.execution.threads,
            "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
            "device": config.execution.device,
            **machine,
        },
        "git": _git(Path(__file__).parents[1]),
    }


def _plugged_packages(config: RunConfig) -> dict[str, str]:
    """Version by name of the packages whose entries the configuration names."""
    packages = (
        FAMILIES.package(config.tasks.family),
        SCHEMES.package(parse_arm(config.search.arm).scheme),
        BUILDERS.package(config.evaluator),
    )
    return dict(package for package in packages if package is not None)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _git(package: Path) -> dict[str, Any] | None:
    """Commit and dirty flag of the checkout that nograd runs from; None if git does not track the package."""
    if _ask_git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = _ask_git(package, "rev-parse", "HEAD")
    changes = _ask_git(package, "status", "--porcelain", "--", ".")
    return {"commit": commit, "dirty": bool(changes)}


def _ask_git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
