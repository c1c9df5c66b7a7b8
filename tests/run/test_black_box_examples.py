"""The examples as a person would run them, and an evaluator named as module:function on the command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import nograd
from nograd.cli import main
from nograd.errors import ConfigError
from nograd.run.evaluators import build_evaluator
from nograd.run.loop import search_settings
from nograd.search.es import ask, init

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("function", r"right documents: 12 of 16 untouched, 15 tuned"),
        ("service", "decided right"),
        ("class", "good days"),
    ],
)
def test_examples_run_and_learn(name: str, after: str, tmp_path: Path) -> None:
    script = EXAMPLES / f"black_box_{name}.py"
    done = subprocess.run(
        [sys.executable, str(script), "run"], cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert re.search(after, done.stdout)
    run = nograd.load_run(tmp_path / "run")
    assert run.complete
    success = run.array("success")
    assert success[-5:].mean() > success[0] + 0.2
    assert not run.array("dropped").size, "errors of the service are tried again"


@pytest.fixture
def bakery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the example's module, and nograd started in it."""
    shutil.copy(EXAMPLES / "black_box_class.py", tmp_path / "my_bakery.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_bakery", raising=False)
    return tmp_path


RUN = ["run", "--set", "evaluator=my_bakery:make", "--generations", "3"]


def test_an_evaluator_by_its_place(bakery: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--dry-run"]) == 0
    assert "# evaluations: 9 per generation, 27 in all" in capsys.readouterr().out
    assert main(RUN) == 0
    assert (bakery / "runs" / "my_bakery-make-uniform-seed1").is_dir()
    assert main(["run", "--resume", "runs/my_bakery-make-uniform-seed1"]) == 0
    capsys.readouterr()
    assert main(["show", "runs/my_bakery-make-uniform-seed1"]) == 0
    shown = capsys.readouterr().out
    assert "my_bakery:make" in shown
    assert "requests" not in shown
    assert "smollm2" not in shown


def test_a_changed_module_is_another_run(
    bakery: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*RUN, "--out", "mine"]) == 0
    module = bakery / "my_bakery.py"
    module.write_text(module.read_text("utf-8").replace("LEFT_OVER = 15", "LEFT_OVER = 16"), "utf-8")
    monkeypatch.delitem(sys.modules, "my_bakery")
    assert main(["run", "--resume", "mine"]) == 2
    assert "facts.source was" in capsys.readouterr().err


@pytest.mark.usefixtures("bakery")
@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("my_bakery:mak", "did you mean 'make'"),
        ("my_bakery:DAYS", "unknown function in my_bakery 'DAYS'; known: make"),
        ("my_bakry:make", "evaluator module 'my_bakry' cannot be imported"),
        (":make", "cannot be imported"),
        ("my_bakery:RunConfig.model_copy", "unknown function"),
    ],
)
def test_mistakes_are_sentences(place: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--set", f"evaluator={place}", "--dry-run"]) == 2
    assert sentence in capsys.readouterr().err


def test_what_a_maker_must_make(bakery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bakery / "wrong_maker.py").write_text("def make(config):\n    return 3\n", "utf-8")
    monkeypatch.delitem(sys.modules, "wrong_maker", raising=False)
    with pytest.raises(ConfigError, match=r"made 3, which has no modules, no dim, no evaluate, no bottleneck"):
        build_evaluator(nograd.load_config(None, ["evaluator=wrong_maker:make"]))


@pytest.mark.usefixtures("bakery")
def test_facts_and_machine_of_a_maker_are_kept(bakery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from nograd import BlackBox\n"
        "from nograd.run.evaluators import Built\n\n\n"
        "def score(theta, generation, seed):\n    return 0.5\n\n\n"
        "def make(config):\n"
        "    box = BlackBox(score, ['a', 'b'], 2, seed=config.seed)\n"
        "    return Built(box, {'service': 'v1'}, {'threads': 7})\n"
    )
    (bakery / "my_box.py").write_text(source, "utf-8")
    monkeypatch.delitem(sys.modules, "my_box", raising=False)
    config = nograd.load_config(None, ["evaluator=my_box:make", "seed=5", "search.generations=1"])
    built = build_evaluator(config)
    assert built.facts["service"] == "v1"
    assert len(built.facts["source"]) == 64
    assert built.machine == {"threads": 7}
    settings = search_settings(config, built.evaluator)
    result = built.evaluator.evaluate(0, ask(settings, init(settings)).thetas)
    assert [evaluation.success for evaluation in result.evaluations] == [0.5] * 9
    assert main(["run", "--set", "evaluator=my_box:make", "--generations", "1", "--out", "boxed"]) == 0


def test_a_run_of_a_program_says_where_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nograd.tune_black_box(half, ["a"], 1, out=tmp_path / "run", generations=1, progress=False)
    assert main(["run", "--resume", str(tmp_path / "run")]) == 2
    assert "nograd.tune_black_box(…, resume=True)" in capsys.readouterr().err


def test_show_names_dropped_pairs_and_metrics_that_come_and_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def moody(theta: NDArray[np.float32], generation: int, seed: int) -> dict[str, Any]:
        del seed
        if generation == 1 and theta[0, 0] > 0:
            raise OSError("a bad day")
        return {"success": 0.5, "metrics": {"late": 0.25} if generation else {}}

    with pytest.warns(UserWarning, match="generation 1: 2 of 5 evaluations failed"):
        nograd.tune_black_box(moody, ["a"], 1, out=tmp_path / "run", generations=2, pairs=2, pause=0.0, progress=False)
    assert main(["show", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"late +– +0.25 +0.25", shown)
    assert "2 of 4 pairs dropped for want of a finite fitness" in shown


def half(*_: object) -> float:
    return 0.5
