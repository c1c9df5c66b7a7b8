"""The detectors together, and the record that a run recalls."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from nograd.preflight.finding import Finding
from nograd.preflight.preflight import detect
from nograd.preflight.propose import Proposed
from nograd.preflight.record import (
    Preflight,
    make_preflight,
    newest_preflight,
    read_preflight,
    write_preflight,
)
from nograd.preflight.rung import Effect, Rung
from nograd.preflight.setting import build_setting
from nograd.preflight.subject import identity_of
from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.run.strict_json import dumps
from tiny_models import save_tiny, save_tiny_chat

FINDINGS = (
    Finding("headroom", None, "ok", "fine", figures={"success": 0.1, "n": 3, "none": None, "source": "θ ± σ"}),
    Finding("inert_basis", "caller", "failed", "nothing moves", "raise it", {"margin": float("inf")}),
    Finding("cost", None, "warning", "dear"),
)


RUNG = Rung(4.0, (Effect(1.0, 0.25, -0.1, float("nan")),))
PROPOSED = Proposed(1.5, 0.2, (RUNG,), (), FINDINGS[0])


def config(*settings: str) -> RunConfig:
    return load_config(None, ["evaluator=synthetic", *settings])


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    made = make_preflight(config("search.clip=inf"), FINDINGS, 12.5, PROPOSED)
    path = write_preflight(tmp_path / "new", made)
    text = path.read_text()
    assert text.endswith("\n")
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"not strict JSON: {constant}"))
    back = read_preflight(path)
    assert dumps(back.record()) == dumps(made.record())
    assert (back.config, back.findings) == (made.config, made.findings)
    assert back.proposal is not None
    assert (back.proposal["injection"], back.proposal["perturbations"][0]["state"]) == (1.5, "healthy")
    assert back.tally == "1 ok, 1 warning, 1 failed"
    assert back.failed == FINDINGS[1:2]
    assert 0 <= back.age < 60
    assert [file.name for file in path.parent.iterdir()] == ["preflight.json"]


@pytest.mark.parametrize(
    ("settings", "speaks_of_it"),
    [
        ((), True),
        (("seed=7", "search.arm=hard_noisy:q=0.3", "search.generations=3"), True),
        (("execution.threads=1", "execution.progress=false"), True),
        (("search.sigma=0.2",), False),
        (("search.pairs=8",), False),
        (("tasks.batch=8",), False),
        (("reward.shaping=0",), False),
        (("model.spec=other",), False),
        (("synthetic.regime=migrating_tight",), False),
    ],
)
def test_which_runs_a_preflight_speaks_of(settings: tuple[str, ...], speaks_of_it: bool, tmp_path: Path) -> None:
    write_preflight(tmp_path / "a", make_preflight(config(), FINDINGS, 1.0))
    assert (newest_preflight(config(*settings), tmp_path / "b") is not None) == speaks_of_it


def test_the_newest_counts_and_what_is_damaged_is_passed_over(tmp_path: Path) -> None:
    made = make_preflight(config(), FINDINGS, 1.0)
    write_preflight(tmp_path / "old", replace(made, at=made.at - timedelta(hours=2)))
    write_preflight(tmp_path / "new", replace(made, at=made.at - timedelta(hours=1), seconds=2.0))
    write_preflight(tmp_path / "elsewhere" / "deeper", made)
    for name, content in {"torn": b'{"at": ', "other": b"{}", "list": b"[]", "bytes": b"\xff"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "preflight.json").write_bytes(content)
    found = newest_preflight(config(), tmp_path / "run")
    assert found is not None
    assert (found[0], found[1].seconds) == (tmp_path / "new" / "preflight.json", 2.0)
    assert newest_preflight(config(), tmp_path / "elsewhere" / "run" / "x") is None


def test_other_weights_and_other_tasks_are_another_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOGRAD_CACHE", str(tmp_path / "cache"))
    model = save_tiny_chat(tmp_path / "model")
    tasks = tmp_path / "tasks.jsonl"
    lines = [{"question": f"{n} + {n}?", "answer": str(2 * n), "tool": "calculator"} for n in range(1, 4)]
    lines = [{**line, "arguments": {"expression": line["question"][:-1]}} for line in lines]
    tasks.write_text("".join(json.dumps(line) + "\n" for line in lines))
    agent = load_config(
        None, [f"model.spec={model}", "tasks.family=jsonl", f"tasks.path={tasks}", "execution.device=cpu"]
    )
    write_preflight(tmp_path / "a", make_preflight(agent, FINDINGS, 1.0))
    assert set(identity_of(agent)) >= {"fingerprint", "tasks", "device"}
    assert newest_preflight(agent, tmp_path / "b") is not None
    tasks.write_text(json.dumps(lines[0]) + "\n")
    assert newest_preflight(agent, tmp_path / "b") is None
    tasks.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert newest_preflight(agent, tmp_path / "b") is not None
    save_tiny(model, {"vocab_size": 103, "max_position_embeddings": 2048}, seed=9)
    assert newest_preflight(agent, tmp_path / "b") is None


def test_all_detectors_on_the_synthetic_world(tmp_path: Path) -> None:
    told: list[str] = []
    findings = detect(build_setting(config("search.generations=3")), tmp_path, told.append).findings
    assert len(told) == len(set(told)) > 3
    names = {finding.detector for finding in findings}
    assert names == {
        "gold", "token_limits", "resolution", "headroom", "blame", "determinism", "power", "cost", "context",
        "company_noise", "inert_basis", "flat_reward", "divergence",
    }  # fmt: skip
    left_out = {finding.detector for finding in findings if finding.sentence.startswith("left out")}
    assert left_out == {"gold", "token_limits", "context", "company_noise", "inert_basis"}
    assert all(finding.sentence and bool(finding.advice) == (finding.verdict != "ok") for finding in findings)
    preflight: Preflight = make_preflight(config(), findings, 0.1)
    assert read_preflight(write_preflight(tmp_path / "run", preflight)).findings == findings
