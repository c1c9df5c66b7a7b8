"""What another package brings by entry points: found, listed, used, resumed; what is broken is named and left out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nograd.plugins import Registry

PARTS = '''
import numpy as np

from nograd.run.evaluators import Built
from nograd.search.arms import SchemeInfo
from nograd.search.evaluation import Evaluation, GenerationResult
from nograd.search.schemes import Routing
from nograd.tasks.family import FamilyInfo
from nograd.tasks.in_house import in_house
from nograd.tasks.registry import Entry

ELEMENTS = Entry(FamilyInfo("elements", 32, "questions about elements"), in_house)


def _to_last(situation):
    pairs = np.zeros(situation.modules, np.int64)
    pairs[-1] = situation.free
    return Routing(pairs, (pairs > 0).astype(float))


def _too_many(situation):
    return Routing(np.ones(situation.modules, np.int64), np.ones(situation.modules))


TO_LAST = SchemeInfo("all to the last module", ("explore",), _to_last)
TOO_MANY = SchemeInfo("one to every module, whatever there is", (), _too_many)
NO_ROUTE = SchemeInfo("forgot the route")


class Hill:
    modules = ("x", "y")
    dim = 3

    def bottleneck(self, generation):
        return None

    def evaluate(self, generation, thetas):
        fitness = [-float(((theta - 1) ** 2).sum()) for theta in thetas]
        return GenerationResult(tuple(Evaluation(f, 1 / (1 - f), f) for f in fitness))


def hill(config):
    return Built(Hill(), {"hill": 1})
'''
ENTRIES = """
[nograd.families]
elements = chemistry_parts:ELEMENTS
in_house = chemistry_parts:ELEMENTS
misnamed = chemistry_parts:ELEMENTS
missing = chemistry_parts:NOTHING
crashing = chemistry_crash:ELEMENTS

[nograd.arms]
to_last = chemistry_parts:TO_LAST
too_many = chemistry_parts:TOO_MANY
no_route = chemistry_parts:NO_ROUTE

[nograd.evaluators]
hill = chemistry_parts:hill
own = chemistry_parts:hill
"""


def write_package(folder: Path, name: str, entries: str, version: str = "1.2") -> None:
    """An installed distribution as pip leaves it."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "chemistry_parts.py").write_text(PARTS)
    (folder / "chemistry_crash.py").write_text("import a_library_that_is_not_there\n")
    write_package(folder, "chemistry", ENTRIES)
    return folder


DRIVER = """
import contextlib, io, json, sys
from nograd.cli import main

outcomes = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    outcomes.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(outcomes))
"""


def nograd(site: object, *commands: str) -> list[tuple[int, str, str]]:
    """Status, stdout and stderr of commands in one process, with the packages of a folder installed."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps([command.split() for command in commands])],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [(status, out, err) for status, out, err in json.loads(done.stdout)]


def test_lists_show_what_works_and_name_what_does_not(site: Path) -> None:
    quiet, tasks, arms, one, typo, own = nograd(
        site,
        "tasks in_house",
        "tasks",
        "arms",
        "tasks elements",
        "run --tasks elemnts --dry-run",
        "run --set evaluator=own --dry-run",
    )
    assert quiet[2] == "", "as long as only nograd's own are asked for, nothing is looked for"
    assert "questions about elements" in tasks[1]
    assert all(name not in tasks[1] for name in ("misnamed", "missing", "crashing"))
    expected = {
        "in_house": "nograd has an entry of this name; the package must choose another",
        "misnamed": "it must be a nograd.tasks.registry.Entry of the same name",
        "missing": "AttributeError",
        "crashing": "ModuleNotFoundError(\"No module named 'a_library_that_is_not_there'\")",
    }
    lines = tasks[2].splitlines()
    assert len(lines) == len(expected)
    for name, reason in expected.items():
        (line,) = [each for each in lines if f"entry {name!r} of nograd.families in the package chemistry 1.2" in each]
        assert reason in line
    assert "all to the last module" in arms[1]
    assert "'no_route' of nograd.arms in the package chemistry 1.2 is not used: it must be" in arms[2]
    assert one[1].count("in_house-") == 32
    assert (typo[0], "did you mean 'elements'?" in typo[2]) == (2, True)
    assert (own[0], "nograd.tune" in own[2]) == (2, True)


def test_a_run_of_a_plugged_evaluator_and_arm(site: Path, tmp_path: Path) -> None:
    run, bad = tmp_path / "run", tmp_path / "bad"
    made, shown, refused = nograd(
        site,
        f"run --set evaluator=hill --arm to_last:explore=0.5 --generations 4 --out {run}",
        f"show {run}",
        f"run --set evaluator=hill --arm too_many --out {bad}",
    )
    assert made[0] == 0, made[2]
    generations = [json.loads(line) for line in (run / "generations.jsonl").read_text().splitlines()]
    assert [line["allocation"] for line in generations] == [[0, 4]] * 4
    assert generations[-1]["fitness"] > generations[0]["fitness"]
    environment = json.loads((run / "environment.json").read_text())
    assert environment["versions"]["chemistry"] == "1.2"
    assert "to_last:explore=0.5" in shown[1]
    sentence = "scheme 'too_many' sent the pairs [1, 1]; it must return 2 integers, 0 or more, that sum to 4"
    assert (refused[0], sentence in refused[2]) == (2, True)
    ((status, _, said),) = nograd(tmp_path, f"show {run}")
    assert (status, "unknown scheme 'to_last'" in said) == (2, True), "without the package"


def test_two_packages_with_one_name(site: Path, tmp_path: Path) -> None:
    write_package(tmp_path, "alchemy", "[nograd.families]\nelements = chemistry_parts:ELEMENTS\n")
    ((_, listed, warned),) = nograd(f"{site}{os.pathsep}{tmp_path}", "tasks")
    assert "questions about elements" not in listed
    for package in ("alchemy", "chemistry"):
        assert f"'elements' of nograd.families in the package {package} 1.2 is not used: another package" in warned


def test_a_registry_without_plug_ins_is_its_own_entries() -> None:
    def check(name: str, value: object) -> int:
        raise AssertionError((name, value))

    registry: Registry[int] = Registry("nograd.no_such_group", {"b": 1, "a": 2}, check)
    assert dict(registry) == {"b": 1, "a": 2}
    assert (len(registry), list(registry), "c" in registry, registry.package("b")) == (2, ["b", "a"], False, None)
