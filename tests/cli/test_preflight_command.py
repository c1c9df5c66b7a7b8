"""nograd preflight, and what nograd run says of it: the synthetic world, and a tiny model that answers nonsense."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_command import Command

from nograd.preflight.record import read_preflight

SYNTHETIC = ["--set", "evaluator=synthetic", "--generations", 2]
FILE = "runs/synthetic-uniform-seed1/preflight.json"


@pytest.fixture(autouse=True)
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def results(run: Path) -> list[dict[str, object]]:
    """The generations without the timings."""
    lines = (run / "generations.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


def test_findings_are_printed_kept_and_recalled_and_the_run_is_the_same(nograd: Command, in_tmp: Path) -> None:
    """The run starts in the preflight's directory."""
    outcome = nograd("preflight", *SYNTHETIC, "--json")
    found = read_preflight(in_tmp / FILE)
    assert outcome.status == (1 if found.failed else 0)
    assert outcome.last_json == found.record()
    assert found.findings
    for finding in found.findings:
        assert finding.detector in outcome.out
        assert finding.advice in outcome.out
    assert f"{found.tally}; kept in {FILE}" in outcome.out
    assert "the untouched model" in outcome.err

    run = nograd("run", *SYNTHETIC)
    assert run.status == 0
    assert f" ago: {found.tally} ({FILE})" in run.err
    assert run.err.count("warning: preflight: ") == len(found.failed) > 0
    assert f"warning: preflight: {found.failed[0].detector}" in run.err
    assert (in_tmp / FILE).exists()
    (directory,) = (in_tmp / "runs").iterdir()

    shutil.copytree(directory, in_tmp / "kept")
    shutil.rmtree(in_tmp / "runs")
    alone = nograd("run", *SYNTHETIC)
    assert "preflight" not in alone.err
    assert results(in_tmp / "kept") == results(directory)


def test_a_preflight_beside_the_run_is_recalled_and_one_of_other_settings_is_not(nograd: Command) -> None:
    nograd("preflight", *SYNTHETIC, "--out", "runs/first", "--propose")
    assert "preflight" in nograd("run", *SYNTHETIC, "--seed", 2, "--arm", "random", "--out", "runs/second").err
    assert "preflight" not in nograd("run", *SYNTHETIC, "--set", "search.sigma=0.1", "--out", "runs/third").err


def test_a_preflight_of_an_existing_run_takes_its_settings(nograd: Command, in_tmp: Path) -> None:
    nograd("run", *SYNTHETIC, "--set", "search.sigma=0.123", "--out", "run")
    nograd("preflight", "--out", "run")
    assert read_preflight(in_tmp / "run" / "preflight.json").config.search.sigma == 0.123
    assert "2 of 2 generations" in nograd("show", "run").out
    assert " ago: " in nograd("run", "--resume", "run").err


def test_the_status_says_whether_a_check_failed(nograd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from nograd.preflight import preflight
    from nograd.preflight.finding import Finding
    from nograd.preflight.preflight import Detected

    for verdict, status in (("ok", 0), ("warning", 0), ("failed", 1)):
        found = (Finding("headroom", None, verdict, "said so", "" if verdict == "ok" else "change it"),)  # type: ignore[arg-type]
        monkeypatch.setattr(preflight, "detect", lambda *_, found=found, **_options: Detected(found))
        outcome = nograd("preflight", *SYNTHETIC, "--out", verdict)
        assert outcome.status == status
        assert ("what to change\n  headroom: change it" in outcome.out) == (verdict != "ok")


def test_a_sweep_is_priced_at_the_speed_measured_here(nograd: Command, in_tmp: Path) -> None:
    (in_tmp / "mine.toml").write_text(
        'title = "Mine"\npaper = "none"\nnotes = "none"\nbaseline = "uniform"\nseeds = "1-3"\n'
        '[settings]\nevaluator = "synthetic"\n[arms]\nuniform = "uniform"\nhard = "hard"\n'
        '[[predictions]]\nid = "p"\nclaim = "c"\nwhy = "w"\n'
        'criteria = [{ of = "hard", minus = "uniform", high = 0.02 }]\n'
    )
    outcome = nograd("preflight", *SYNTHETIC, "--plan", "mine.toml")
    assert outcome.status in (0, 1), outcome.err
    found = read_preflight(in_tmp / FILE)
    (sweep,) = [finding for finding in found.findings if "sweep mine" in finding.sentence]
    assert "6 to do (2 arms × 3 seeds)" in sweep.sentence
    assert f"rollouts: {6 * 2 * 9 * 16:,}" in sweep.sentence
    assert "at the speed of this preflight" in sweep.sentence
    assert "sweep mine" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tasks", "in_hous"], "did you mean 'in_house'?"),
        (["--set", "evaluator=agnet"], "did you mean 'agent'?"),
        (["--arm", "uniform:floor=2"], "takes 8 pairs of 4"),
        (["--set", "tasks.batch=33"], "in_house has 32 tasks"),
        (["nowhere.toml"], "cannot read the configuration nowhere.toml"),
        (["--plan", "mian"], "did you mean 'main'?"),
    ],
)
def test_mistakes_are_found_before_anything_is_loaded(
    arguments: list[str], sentence: str, nograd: Command, in_tmp: Path
) -> None:
    outcome = nograd("preflight", *arguments)
    assert outcome.status == 2
    assert sentence in outcome.err
    assert "loading" not in outcome.err
    assert not list(in_tmp.iterdir())


def test_a_preflight_that_broke_off_takes_no_name(nograd: Command, in_tmp: Path) -> None:
    assert nograd("preflight", "--set", "evaluator=synthetic", "--set", "synthetic.regime=none").status == 2
    assert nograd("preflight", *SYNTHETIC).status in (0, 1)
    assert nograd("preflight", *SYNTHETIC).status in (0, 1)
    assert [file.name for file in (in_tmp / "runs").iterdir()] == ["synthetic-uniform-seed1"]


def test_a_file_in_the_way_is_a_mistake(nograd: Command, in_tmp: Path) -> None:
    (in_tmp / "file").touch()
    outcome = nograd("preflight", *SYNTHETIC, "--out", "file")
    assert outcome.status == 2
    assert "cannot write file" in outcome.err


def test_a_model_that_answers_nonsense(nograd: Command, tiny_model: Path, in_tmp: Path) -> None:
    """Every check that needs a model is there; the tiny tokenizer's tokens are characters, so that gold calls are
    too long for the stage."""
    outcome = nograd(
        "preflight", "--model", tiny_model, "--dtype", "float32", "--pairs", 1, "--set", "subspace.dim=2",
        "--set", "tasks.batch=2", "--set", "agent.token_limits.caller=8", "--out", "run",
    )  # fmt: skip
    assert outcome.status == 1
    found = {
        (finding.detector, finding.module): finding
        for finding in read_preflight(in_tmp / "run/preflight.json").findings
    }
    assert found["token_limits", "caller"].verdict == "failed"
    assert found["gold", None].verdict == "ok"
    assert found["company_noise", None].verdict == "ok"
    assert found["determinism", None].verdict == "ok"
    assert found["headroom", None].figures["success"] == 0
    assert found["resolution", None].verdict == "warning"
    assert {module for detector, module in found if detector == "inert_basis"} >= {"caller"}
