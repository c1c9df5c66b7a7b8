"""An evaluator of one's own by the place of the code that makes it: evaluator = "my_module:make"."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nograd.errors import ConfigError, unknown_name
from nograd.run.config import RunConfig
from nograd.run.evaluators import Built

PARTS = ("modules", "dim", "evaluate", "bottleneck")
"""Of `search.evaluation.Evaluator`."""


def build_own(config: RunConfig) -> Built:
    """What the function named by `config.evaluator` makes of the configuration: an evaluator, or a `Built` with
    facts and machine beside it. The facts get the hash of the module's source.

    Raises ConfigError if there is no such function or it makes something else."""
    made = find_maker(config.evaluator)(config)
    built = made if isinstance(made, Built) else Built(made)
    missing = [part for part in PARTS if not hasattr(built.evaluator, part)]
    if missing:
        raise ConfigError(
            f"{config.evaluator} made {built.evaluator!r}, which has no {', no '.join(missing)}; it must make an "
            f"evaluator such as nograd.BlackBox"
        )
    source = inspect.getsource(_import(config.evaluator.partition(":")[0]))
    return Built(built.evaluator, {**built.facts, "source": hashlib.sha256(source.encode()).hexdigest()}, built.machine)


def find_maker(place: str) -> Callable[[RunConfig], Any]:
    """The function at "module:name". Modules in the current folder are found, too; none of them can take the
    place of an installed one. Raises ConfigError if there is none."""
    module_name, _, name = place.partition(":")
    module = _import(module_name)
    maker = getattr(module, name, None)
    if callable(maker):
        return maker  # type: ignore[no-any-return]
    known = [key for key, value in inspect.getmembers(module, inspect.isfunction) if value.__module__ == module_name]
    raise unknown_name(f"function in {module_name}", name, known)


def _import(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise ConfigError(
            f"evaluator module {name!r} cannot be imported ({type(error).__name__}: {error}); write "
            f"evaluator=MODULE:FUNCTION and start nograd in the folder of the module, or install it"
        ) from error
