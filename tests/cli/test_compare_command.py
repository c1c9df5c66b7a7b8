"""`nograd compare` as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_command import Command

from nograd.run.config_source import load_config
from nograd.run.load import load_run
from nograd.run.start import run_config

TINY = ("model.dtype=float32", "execution.threads=1", "execution.device=cpu", "tasks.batch=2", "subspace.dim=4")
LIMITS = tuple(f"agent.token_limits.{stage}=3" for stage in ("planner", "selector", "caller", "synthesizer"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms without a language model, two seeds each."""
    root = tmp_path_factory.mktemp("compare")
    for arm in ("uniform", "random"):
        for seed in (1, 2):
            settings = ["evaluator=synthetic", "search.generations=20", f"search.arm={arm}", f"seed={seed}"]
            run_config(load_config(None, settings), root / arm / str(seed))
    return root


def test_two_runs_end_in_a_verdict(folders: Path, nograd: Command) -> None:
    outcome = nograd("compare", folders / "uniform/1", folders / "random/1", "--json")
    assert outcome.status == 0, outcome.err
    *text, verdict, _ = outcome.out.splitlines()
    found = outcome.last_json
    a, b = (load_run(folders / arm / "1") for arm in ("uniform", "random"))
    mean = float((b.array("success") - a.array("success")).mean())
    assert found["differences"]["success"]["mean"] == pytest.approx(mean)
    assert found["verdict"] == verdict
    assert f"{abs(mean):.3f} {'higher' if mean > 0 else 'lower'} in B over 20 generations" in verdict
    assert "describes these two runs only" in verdict
    assert "from the start, where the pairs of each module differ first" in verdict
    assert any(line.split() == ["search.arm", "uniform", "random"] for line in text)
    assert len(found["distance"]["caller"]) == 21
    assert found["settings"] == {"search.arm": {"a": "uniform", "b": "random"}}


def test_a_run_and_itself(folders: Path, nograd: Command) -> None:
    outcome = nograd("compare", folders / "uniform/1", folders / "uniform/1")
    assert outcome.out.splitlines()[-1] == "Bit-identical over the 20 generations that both have."


def test_folders_are_paired_and_tested(folders: Path, nograd: Command) -> None:
    outcome = nograd("compare", folders / "uniform", folders / "random", "--json")
    assert outcome.status == 0, outcome.err
    found = outcome.last_json
    assert found["seeds"] == [1, 2]
    assert found["contrasts"]["auc"]["p"] in (0.5, 1.0)
    assert set(found["contrasts"]["auc"]["differences"]) == {"1", "2"}
    assert "in AUC over 2 seeds" in found["verdict"]
    assert "2 seeds could not show one (smallest possible p 0.5)" in found["verdict"]
    one = nograd("compare", folders / "uniform", folders / "random/2")
    assert "seed 1 is left out: missing in B" in one.out
    assert "one seed allows no inference" in one.out


def test_changed_requests_of_an_agent_are_shown(tiny_model: Path, nograd: Command, tmp_path: Path) -> None:
    """A strong injection changes what the model writes; generation 0 is the untouched model in both runs."""
    for name, more in (("weak", "subspace.injection=0.001"), ("strong", "subspace.injection=50")):
        settings = [f"model.spec={tiny_model}", "search.generations=2", "search.lr=5", more, *TINY, *LIMITS]
        run_config(load_config(None, settings), tmp_path / name)
    outcome = nograd("compare", tmp_path / "weak", tmp_path / "strong", "--json")
    assert outcome.status == 0, outcome.err
    found = outcome.last_json["trajectories"]
    assert found["first"]["changed"] == []
    assert "trajectories of generation 0: 0 of 2 tasks went another way (0 gained, 0 lost)" in outcome.out
    records = [load_run(tmp_path / name).trajectories("newest") for name in ("weak", "strong")]
    changed = found["newest"]["changed"]
    assert changed, "a strong delta changes what the model says"
    for change in changed:
        weak, strong = (next(row for row in rows if row["task"] == change["task"]) for rows in records)
        before, step = change["step"], change["step"]
        assert weak["steps"][:before] == strong["steps"][:before]
        assert {change["a"], change["b"]} & {weak["steps"][step]["text"], weak["steps"][step]["outcome"]}
        assert weak["steps"][step] != strong["steps"][step]


def test_mistakes_are_one_sentence(folders: Path, nograd: Command, tmp_path: Path) -> None:
    for arguments, says in (
        ((folders / "uniform/1", tmp_path), "holds no run; check the path"),
        ((folders, folders / "uniform"), "name a folder with one arm"),
    ):
        outcome = nograd("compare", *arguments)
        assert outcome.status == 2
        assert says in outcome.err
        assert len(outcome.err.strip().splitlines()) == 1
