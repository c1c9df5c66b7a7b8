"""Small real sweeps without a language model."""

from __future__ import annotations

from pathlib import Path

from nograd.study.plan_file import load_plan
from nograd.study.scaling import Scaling
from nograd.study.sweep import run_sweep
from nograd.study.sweep_directory import Sweep, create_sweep

SYNTHETIC = {"evaluator": "synthetic", "tasks": {"family": "synthetic"}}


def synthetic_sweep(root: Path, plan: str, seeds: tuple[int, ...], generations: int) -> Sweep:
    """A finished sweep of a plan's arms in the synthetic environment."""
    scaling = Scaling(seeds=seeds, generations=generations, settings=SYNTHETIC)
    sweep = create_sweep(root / plan, load_plan(plan), scaling)
    assert run_sweep(sweep).finished
    return sweep
