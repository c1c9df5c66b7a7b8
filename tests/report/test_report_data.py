"""The results as a tidy table, and its files."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nograd
from nograd.errors import ConfigError, RunError
from nograd.report.data import COLUMNS, export, load
from nograd.run.config_source import load_config
from nograd.run.load import load_run
from nograd.run.start import run_config


def test_a_sweep_is_one_row_per_arm_seed_and_generation(sweeps: Path) -> None:
    table = nograd.load(sweeps / "main")
    assert len(table) == 4 * 3 * 8
    assert not table.duplicated(["label", "seed", "generation"]).any()
    assert set(COLUMNS) <= set(table.columns)
    run = load_run(sweeps / "main/hard/seed-0002")
    ours = table[(table["label"] == "hard") & (table["seed"] == 2)].sort_values("generation")
    np.testing.assert_array_equal(ours["success"], run.array("success"))
    np.testing.assert_array_equal(ours["allocation_caller"], run.array("allocation")[:, 2])


def test_sweeps_and_runs_beside_them_count_once(sweeps: Path, tmp_path: Path) -> None:
    run_config(load_config(None, ["evaluator=synthetic", "search.generations=2"]), tmp_path / "alone")
    shutil.copytree(sweeps / "floor", tmp_path / "floor")
    table = load([tmp_path, tmp_path / "alone", tmp_path / "floor"])
    assert len(table) == 3 * 2 * 5 + 2
    alone = table[table["label"].isna()]
    assert alone["run"].unique().tolist() == [str(tmp_path / "alone")]
    assert alone["complete"].tolist() == [True, True]


def test_half_finished_runs_are_marked_and_damaged_ones_named(sweeps: Path, tmp_path: Path) -> None:
    shutil.copytree(sweeps / "floor", tmp_path / "floor")
    half = tmp_path / "floor/uniform/seed-0001/generations.jsonl"
    half.write_bytes(b"".join(half.read_bytes().splitlines(keepends=True)[:3]))
    (tmp_path / "floor/uniform/seed-0002/generations.jsonl").write_bytes(b"no record\n")
    with pytest.warns(UserWarning, match=r"left out: uniform/seed-0002 is damaged"):
        table = load(tmp_path)
    uniform = table[table["label"] == "uniform"]
    assert (len(uniform), uniform["complete"].any()) == (3, False)
    assert table[table["label"] != "uniform"]["complete"].all()


def test_files_hold_the_same_table(sweeps: Path, tmp_path: Path) -> None:
    table = load(sweeps / "main")
    parquet, text, columns = export(table, tmp_path / "data")
    pd.testing.assert_frame_equal(pd.read_parquet(parquet), table)
    pd.testing.assert_frame_equal(pd.read_csv(text), table, check_dtype=False, check_like=True)
    described = [line.split("|")[1].strip() for line in columns.read_text(encoding="utf-8").splitlines()[2:]]
    assert described == list(table.columns)


def test_nothing_to_load_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no run; check the path"):
        load(tmp_path / "absent")
    with pytest.raises(ConfigError, match="nothing to export"):
        export(pd.DataFrame(columns=list(COLUMNS)), tmp_path)
