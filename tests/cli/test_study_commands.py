"""sweep, plans, ledger, report, prestudy and export-data, as a person types them."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from cli_command import Command

from nograd.run.load import load_run
from nograd.study.cell_state import inspect
from nograd.study.ledger import score
from nograd.study.plan_file import plan_names
from nograd.study.sweep_directory import open_sweep

SYNTHETIC = ("--set", "evaluator=synthetic", "--set", "tasks.family=synthetic")


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep, made by the command."""
    from nograd.cli import main

    root = tmp_path_factory.mktemp("floor") / "floor"
    arguments = ["sweep", "floor", *SYNTHETIC, "--seeds", "1-2", "--generations", "3", "--out", str(root)]
    assert main(arguments) == 0
    return root


def test_plans_are_all_listed_and_one_is_shown(nograd: Command) -> None:
    listed = nograd("plans").out.splitlines()
    assert [line.split()[0] for line in listed] == list(plan_names())
    shown = nograd("plans", "floor").out
    assert "hard_noisy:q=0.5,floor=1" in shown
    assert "prediction F2" in shown
    assert "168,480 rollouts" in " ".join(shown.split())


def test_a_plan_s_file_starts_a_plan_of_one_s_own(nograd: Command, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(nograd("plans", "sparse", "--toml").out, encoding="utf-8")
    assert "sparse" in nograd("plans", mine).out


def test_the_plan_of_the_documentation_is_one(nograd: Command, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/study.md").read_text(encoding="utf-8")
    (block,) = re.findall(r'```toml \{title="mine.toml"\}\n(.*?)```', text, re.DOTALL)
    (tmp_path / "mine.toml").write_text(block, encoding="utf-8")
    shown = nograd("plans", tmp_path / "mine.toml")
    assert shown.status == 0, shown.err
    assert "prediction even" in shown.out


def test_a_sweep_runs_every_cell_and_says_what_next(floor: Path, nograd: Command) -> None:
    sweep = open_sweep(floor)
    assert {state.kind for state in inspect(sweep)} == {"complete"}
    assert len(sweep.cells) == 6
    again = nograd("sweep", "--resume", floor)
    assert again.status == 0
    assert f"6 runs complete in {floor}\ntry next: nograd report {floor}" in again.out


def test_workers_and_tracking(nograd: Command, tmp_path: Path) -> None:
    root = tmp_path / "tracked"
    size = ("--seeds", "1", "--generations", "2", "--workers", "2", "--track", "tensorboard")
    outcome = nograd("sweep", "sparse", *SYNTHETIC, *size, "--out", root)
    assert outcome.status == 0, outcome.err
    assert len(list(root.glob("*/seed-0001/tensorboard/events*"))) == 2
    assert "sparse/seed-0001 complete; " in outcome.err
    assert "2 of 2 runs, 100% of the rollouts" in outcome.err


def test_a_terminal_gets_one_bar_for_the_whole_sweep(tmp_path: Path) -> None:
    screen, terminal = pty.openpty()
    size = ("--seeds", "1", "--generations", "3", "--out", str(tmp_path / "bar"))
    code = "import sys; from nograd.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "sweep", "sparse", *SYNTHETIC, *size]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal, env=environment) as process:
        os.close(terminal)
        seen = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(screen, 4096):
                seen += part
    os.close(screen)
    assert process.returncode == 0
    assert "2 of 2 runs, 100% of the rollouts" in seen.decode()
    assert "complete;" not in seen.decode()


def test_dry_run_counts_and_makes_nothing(
    nograd: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    size = ("--seeds", "1-3", "--generations", "15", "--batch", "8")
    outcome = nograd("sweep", "main", *SYNTHETIC, *size, "--dry-run")
    assert "new sweep sweeps/main" in outcome.out
    assert "runs: 12 to do (4 arms × 3 seeds)" in outcome.out
    assert f"rollouts: {4 * 3 * 15 * 9 * 8:,}" in outcome.out
    assert "time: about" in outcome.out
    assert list(tmp_path.iterdir()) == []
    unknown = nograd("sweep", "main", "--dry-run").out
    assert "not known: no earlier run of Qwen/Qwen2.5-1.5B-Instruct" in unknown


def test_dry_run_judges_by_the_newest_run_like_it(
    nograd: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nograd("sweep", "sparse", *SYNTHETIC, "--seeds", "1", "--generations", "2")
    outcome = nograd("sweep", "sparse", *SYNTHETIC, "--seeds", "2", "--dry-run")
    assert "at the speed of sweeps/sparse/" in outcome.out
    assert "new sweep sweeps/sparse-2" in outcome.out
    left = nograd("sweep", "--resume", "sweeps/sparse", "--dry-run")
    assert "runs: 0 to do" in left.out
    assert "time: none" in left.out
    replay = nograd("sweep", "held-out", "--dry-run").out
    assert "it is judged from the runs of a finished bfcl-main sweep (--source)" in replay


def wait_for(process: subprocess.Popen[str], there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not there():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_stops_cleanly_and_resume_goes_on(nograd: Command, tmp_path: Path, workers: str) -> None:
    root = tmp_path / "stopped"
    size = ("--seeds", "1-2", "--generations", "2000", "--workers", workers, "--out", str(root))
    command = ("sweep", "sparse", *SYNTHETIC, *size)
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from nograd.cli import main; sys.exit(main())", *command],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    wait_for(process, lambda: any(path.stat().st_size for path in root.glob("*/*/generations.jsonl")))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped with 0 of 4 cells complete; nothing is lost" in said
    assert f"nograd sweep --resume {root}" in said
    assert "Traceback" not in said
    states = inspect(open_sweep(root))
    assert any(state.kind == "half-finished" for state in states)
    assert not any(state.kind == "damaged" for state in states)
    assert f"what is left of {root}" in nograd("sweep", "--resume", root, "--dry-run").out


def test_failed_runs_are_named_and_the_status_says_so(nograd: Command, tmp_path: Path) -> None:
    root = tmp_path / "failing"
    size = ("--seeds", "1", "--generations", "2", "--out", root)
    assert nograd("sweep", "sparse", *SYNTHETIC, *size).status == 0
    (root / "sparse/seed-0001/generations.jsonl").write_bytes(b"no record\n")
    outcome = nograd("sweep", "--resume", root)
    assert outcome.status == 2
    assert "sparse/seed-0001 failed: line 1 of" in " ".join(outcome.err.split())
    assert "1 of 2 runs failed, the others are complete" in outcome.err


def test_the_ledger_scores_and_without_a_sweep_is_the_paper_s(floor: Path, nograd: Command) -> None:
    outcome = nograd("ledger", floor, "--json")
    sweep = open_sweep(floor)
    expected = {row.prediction.id: row.outcome for row in score([sweep], sweep.file)}
    assert {row["prediction"]: row["outcome"] for row in outcome.last_json["rows"]} == expected
    assert "was scaled (seeds = 1-2, generations = 3, evaluator = synthetic" in outcome.out
    paper = nograd("ledger", "--json").last_json
    outcomes = [row["outcome"] for row in paper["rows"]]
    assert (paper["scored"], paper["hits"], outcomes.count("miss")) == (28, 19, paper["misses"])


def test_report_and_data_are_files(floor: Path, nograd: Command, tmp_path: Path) -> None:
    outcome = nograd("report", floor, "--out", tmp_path / "report")
    assert outcome.out.splitlines()[0] == str(tmp_path / "report/index.html")
    assert (tmp_path / "report/tables/floor-auc.csv").exists()
    assert nograd("export-data", floor, "--out", tmp_path / "data").status == 0
    table = pd.read_parquet(tmp_path / "data/data.parquet")
    hard = load_run(floor / "hard~0.5/seed-0002").array("success")
    ours = table[(table["label"] == "hard~0.5") & (table["seed"] == 2)]
    assert ours["success"].tolist() == hard.tolist()


def test_prestudy_prints_the_paper_beside(nograd: Command, tmp_path: Path) -> None:
    file = tmp_path / "auc.csv"
    size = ("--regime", "stationary_tight", "--seeds", "1-3", "--generations", "10")
    outcome = nograd("prestudy", *size, "--arm", "hard", "--csv", file)
    assert "-0.037" in outcome.out
    assert len(pd.read_csv(file)) == 2 * 3


MISTAKES = [
    (("sweep", "mian"), "unknown plan 'mian'; did you mean 'main'?"),
    (("sweep",), "name a plan (see 'nograd plans') or the sweep to go on with (--resume DIR)"),
    (("sweep", "absent.toml"), "cannot read the plan absent.toml"),
    (("sweep", "main", "--seeds", "1-3,2"), "2 come twice; name each seed once"),
    (("sweep", "main", "--seeds", "x"), "'x' does not name seeds"),
    (("sweep", "main", "--generations", "0"), "--generations is 0; it must be greater than or equal to 1"),
    (("sweep", "main", "--workers", "0"), "workers must be 1 or more, got 0"),
    (("sweep", "main", "--executor", "slurm"), "unknown executor 'slurm'"),
    (("sweep", "main", "--track", "wandb"), "execution.track"),
    (("sweep", "main", "--set", "search.sgima=1"), "search.sgima"),
    (("sweep", "main", "--set", "search.sigma="), "--set search.sigma=: give a value"),
    (("sweep", "main", "--set", "seed=3"), "--set seed=3: in a sweep that is --seeds; use it instead"),
    (("sweep", "main", "--set", "tasks.family=nope"), "unknown task family 'nope'"),
    (("sweep", "main", "--set", "evaluator=nope"), "unknown evaluator 'nope'"),
    (("sweep", "main", "--batch", "999"), "arm 'uniform': tasks.batch = 999, but in_house has"),
    (("sweep", "held-out"), "run that plan first and name its directory as the source"),
    (("sweep", "main", *SYNTHETIC, "--source", "x"), "plan 'main' is no replay; leave out the source x"),
    (("sweep", "--resume", "absent"), "absent holds no sweep; check the path"),
    (("sweep", "main", "--resume", "absent"), "--resume goes on with the plan and the settings"),
    (("plans", "nope"), "unknown plan 'nope'"),
    (("plans", "--toml"), "--toml prints one plan; name it"),
    (("ledger", "absent"), "absent holds no sweep; check the path"),
    (("report", "absent"), "absent holds no sweep; check the path"),
    (("export-data", "absent"), "absent holds no run; check the path"),
    (("prestudy", "--arm", "nope"), "unknown scheme 'nope'"),
    (("prestudy", "--seeds", "1"), "the pre-study pairs by seed"),
    (("prestudy", "--regime", "nope"), "unknown regime 'nope'"),
]


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES)
def test_a_mistake_is_one_clear_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    nograd: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = nograd(*arguments)
    assert outcome.status == 2
    assert sentence in outcome.err
    assert "Traceback" not in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_two_sweeps_that_do_not_go_together(floor: Path, nograd: Command, tmp_path: Path) -> None:
    size = ("--seeds", "1", "--generations", "2", "--out", tmp_path / "other")
    nograd("sweep", "floor", *SYNTHETIC, *size)
    outcome = nograd("report", floor, tmp_path / "other", "--out", tmp_path / "report")
    assert outcome.status == 2
    assert "has search.generations = 3 in" in outcome.err
    assert not (tmp_path / "report").exists()
