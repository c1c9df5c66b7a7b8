"""What is exported: the coefficients of one generation of a run, and the subspace that they act in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.assets import cache_dir
from nograd.errors import ConfigError, RunError
from nograd.llm.architecture import Architecture
from nograd.llm.checkpoint import weight_files
from nograd.llm.fingerprint import fingerprint
from nograd.llm.loading import DTYPES, load_weights, pick_device
from nograd.llm.sources import Source, find_model
from nograd.llm.subspace import Subspace, build_subspace
from nograd.run.build_agent import subspace_spec
from nograd.run.load import RunRecord


@dataclass(frozen=True, eq=False)
class Tuned:
    """modules: names of the stages; theta: float32 [modules, size]; source: the folder of the untouched model."""

    modules: tuple[str, ...]
    theta: NDArray[np.float32]
    source: Source
    architecture: Architecture
    subspace: Subspace

    @property
    def untouched(self) -> tuple[bool, ...]:
        """By module: whether all its coefficients are zero."""
        return tuple(not row.any() for row in self.theta)


def check_exportable(run: RunRecord) -> None:
    """Raise ConfigError if the run tuned no language model of nograd's own engine. Cheap: loads nothing."""
    if "fingerprint" not in run.environment["identity"]["facts"]:
        raise ConfigError(
            f"{run.path} tuned the evaluator {run.config.evaluator!r}, which has no language model to export; "
            "choose a run of an agent"
        )


def pick_generation(run: RunRecord, generation: int | None) -> int:
    """After how many generations: None stands for all that the run has. Raises ConfigError if it has not so many."""
    done = len(run.generations)
    if generation is None:
        return done
    if not 0 <= generation <= done:
        raise ConfigError(
            f"generation = {generation} was asked for, but {run.path} has {done}; "
            f"give a number from 0, the untouched model, to {done}"
        )
    return generation


def tuned_of(run: RunRecord, generation: int) -> Tuned:
    """The coefficients after so many generations, in the subspace that the run moved them in.

    Its directions come from the weights in the run's dtype, as they did then. Raises RunError if the model's
    weights are no longer the run's, ModelError if the model cannot be loaded."""
    check_exportable(run)
    facts = run.environment["identity"]["facts"]
    source = find_model(run.config.model.spec, facts["revision"])
    found = fingerprint(weight_files(source.folder))
    if found != facts["fingerprint"]:
        raise RunError(
            f"{run.path} tuned a model with the fingerprint {facts['fingerprint'][:16]}…, but "
            f"{run.config.model.spec!r} now has {found[:16]}…; put the weights back that it ran with"
        )
    architecture, weights = load_weights(source.folder, DTYPES[facts["dtype"]], pick_device("auto"))
    spec = subspace_spec(run.config, len(run.modules))
    subspace = build_subspace(architecture, weights, spec, found, cache_dir() / "subspaces")
    return Tuned(run.modules, run.theta[generation], source, architecture, subspace)
