"""Small real sweeps, once per session: the main arms and the pre-study's, without a language model."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_sweeps import synthetic_sweep

from nograd.report.gather import Study, gather
from nograd.report.write import write_report
from nograd.study.plan_file import load_plan
from nograd.study.scaling import Scaling
from nograd.study.sweep import run_sweep
from nograd.study.sweep_directory import create_sweep


@pytest.fixture(scope="session")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with finished sweeps of several plans."""
    root = tmp_path_factory.mktemp("sweeps")
    synthetic_sweep(root, "main", (1, 2, 3), 8)
    synthetic_sweep(root, "credit-noise", (1, 2, 3), 8)
    synthetic_sweep(root, "floor", (1, 2), 5)
    synthetic_sweep(root, "prestudy", (1, 2), 2)
    return root


@pytest.fixture(scope="session")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, ...]:
    """A trained BFCL-shaped sweep and its replay."""
    root = tmp_path_factory.mktemp("replayed")
    trained = synthetic_sweep(root, "bfcl-main", (1, 2), 4)
    scaling = Scaling(seeds=(1, 2), settings={"evaluator": "synthetic"})
    replay = create_sweep(root / "held-out", load_plan("held-out"), scaling, trained.root)
    assert run_sweep(replay).finished
    return gather([root])


@pytest.fixture(scope="session")
def studies(sweeps: Path) -> tuple[Study, ...]:
    return gather([sweeps])


@pytest.fixture(scope="session")
def report(studies: tuple[Study, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a report about all but the pre-study, whose many arms take long to draw."""
    out = tmp_path_factory.mktemp("report")
    write_report([study for study in studies if study.file.name != "prestudy"], out)
    return out
