"""Two runs side by side: against numbers worked out by hand, and against changes made on purpose."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from vector_world import DIM, MODULES, VectorWorld, vector_config

from nograd.errors import ConfigError
from nograd.run.compare import compare_runs
from nograd.run.compare_seeds import compare_seeds
from nograd.run.differences import differences
from nograd.run.load import RunRecord, find_runs, load_run
from nograd.run.loop import run
from nograd.search import metrics
from nograd.stats import sign_flip

GENERATIONS = 9


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three arms under three seeds."""
    root = tmp_path_factory.mktemp("runs")
    for arm in ("uniform", "hard", "soft"):
        for seed in (1, 2, 3):
            config = vector_config(f"search.generations={GENERATIONS}", f"search.arm={arm}", f"seed={seed}")
            run(config, VectorWorld(seed), root / arm / str(seed))
    return root


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A run that may be changed."""
    return lambda name: Path(shutil.copytree(made / name, tmp_path / name))


def rewrite(path: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change one line of a file of JSON lines."""
    lines = path.read_text().splitlines()
    row = json.loads(lines[number])
    change(row)
    lines[number] = json.dumps(row)
    path.write_text("".join(f"{line}\n" for line in lines))


def shorten(root: Path, generations: int) -> RunRecord:
    """The run as it was after so many generations."""
    lines = root / "generations.jsonl"
    lines.write_bytes(b"".join(lines.read_bytes().splitlines(keepends=True)[:generations]))
    return load_run(root)


def folder(made: Path, arm: str) -> list[RunRecord]:
    return [load_run(path) for path in find_runs(made / arm)]


def test_a_run_is_identical_to_its_repetition(made: Path, tmp_path: Path) -> None:
    config = vector_config(f"search.generations={GENERATIONS}", "execution.threads=1")
    run(config, VectorWorld(1), tmp_path)
    found = compare_runs(load_run(made / "uniform/1"), load_run(tmp_path))
    assert found.identical
    assert found.settings == {}
    assert found.execution == {"threads": (None, 1)}
    assert set(found.divergence.values()) == {None}
    assert found.distance is not None
    assert found.distance.shape == (GENERATIONS + 1, len(MODULES))
    assert not found.distance.any()
    assert all(changed is not None and not changed.changed for changed in found.trajectories.values())


def test_arms_part_where_their_allocation_does(made: Path) -> None:
    a, b = load_run(made / "uniform/1"), load_run(made / "hard/1")
    found = compare_runs(a, b)
    assert found.settings == {"search.arm": ("uniform", "hard")}
    assert not found.identical
    np.testing.assert_array_equal(found.differences["success"].values, b.array("success") - a.array("success"))
    apart = np.linalg.norm(b.theta.astype(np.float64) - a.theta, axis=2)
    np.testing.assert_allclose(found.distance, apart)
    assert (found.divergence["allocation"], found.divergence["theta"]) == (0, 1)
    assert found.divergence["sigma"] is None
    credit = (a.array("credit_before") != b.array("credit_before")).any(axis=1)
    assert found.divergence["credit"] == int(credit.argmax())
    assert found.divergence["center"] is not None, "the coefficients move what the center scores"


@pytest.mark.parametrize(
    ("change", "aspect"),
    [
        (lambda row: row.update(fitness=row["fitness"] + 1e-12), "center"),
        (lambda row: row["metrics"].update(call_ok=0.123), "center"),
        (lambda row: row["credit_before"].reverse(), "credit"),
        (lambda row: row["candidates"][3].update(fitness=0.5), "candidates"),
        (lambda row: row["sigma"].__setitem__(2, 0.31), "sigma"),
        (lambda row: row.update(allocation=[4, 0, 0, 0]), "allocation"),
    ],
)
def test_one_changed_number_is_found_where_it_is(
    change: Callable[[dict[str, Any]], object], aspect: str, made: Path, copied: Callable[[str], Path]
) -> None:
    root = copied("soft/2")
    rewrite(root / "generations.jsonl", 5, change)
    found = compare_runs(load_run(made / "soft/2"), load_run(root))
    assert not found.identical
    assert {name: first for name, first in found.divergence.items() if first is not None} == {aspect: 5}


def test_what_a_run_cost_is_no_result(made: Path, copied: Callable[[str], Path]) -> None:
    root = copied("soft/2")
    for change in ({"seconds": {"generation": 9.0, "evaluation": 8.0}}, {"counts": {"tokens_decoded": 1}}):
        rewrite(root / "generations.jsonl", 5, lambda row, change=change: row.update(change))  # type: ignore[misc]
    assert compare_runs(load_run(made / "soft/2"), load_run(root)).identical


def test_changed_steps_are_shown_with_their_texts(copied: Callable[[str], Path]) -> None:
    def steps(*texts: str, success: bool = False, outcome: str = "") -> dict[str, Any]:
        rows = [{"stage": s, "text": t, "outcome": outcome} for s, t in zip(("planner", "caller"), texts, strict=False)]
        return {"steps": rows, "success": success, "answer": texts[-1]}

    a, b = copied("uniform/1"), copied("hard/1")
    before = [steps("p", "c"), steps("p", "c", outcome="4"), steps("p"), steps("p", "c"), steps("p", success=True)]
    after = [steps("p", "d", success=True), steps("p", "c", outcome="5"), steps("p", "c"), steps("p", "c"), steps("q")]
    for root, rows in ((a, before), (b, after)):
        for number, row in enumerate(rows):
            rewrite(root / "trajectories/first.jsonl", number, lambda line, row=row: line.update(row))  # type: ignore[misc]
        for number in range(5, 12):
            rewrite(root / "trajectories/first.jsonl", number, lambda line: line.update(worked=[]))
    found = compare_runs(load_run(a), load_run(b)).trajectories["first"]
    assert found is not None
    assert (found.generation, found.tasks, found.gained, found.lost) == (0, 12, 1, 1)
    assert [(c.task, c.step, c.what, c.a, c.b) for c in found.changed] == [
        ("0", 1, "caller", "c", "d"),
        ("1", 0, "planner", "4", "5"),
        ("2", 1, "caller", None, "c"),
        ("4", 0, "planner", "p", "q"),
    ]


def test_trajectories_without_steps_are_compared_key_by_key(made: Path, copied: Callable[[str], Path]) -> None:
    root = copied("uniform/1")
    rewrite(root / "trajectories/newest.jsonl", 4, lambda row: row.update(worked=[True], task="new"))
    rewrite(root / "trajectories/newest.jsonl", 5, lambda row: row.update(worked=[False]))
    found = compare_runs(load_run(made / "uniform/1"), load_run(root))
    newest = found.trajectories["newest"]
    assert newest is not None
    assert not found.identical
    assert (newest.only_a, newest.only_b) == (("4",), ("new",))
    assert [(c.task, c.step, c.what, c.b) for c in newest.changed] == [("5", None, "worked", "[False]")]


def test_an_unfinished_run_is_compared_as_far_as_it_goes(made: Path, copied: Callable[[str], Path]) -> None:
    short, whole = shorten(copied("uniform/1"), 4), load_run(made / "uniform/1")
    (short.path / "trajectories/newest.jsonl").unlink()
    found = compare_runs(short, whole)
    assert (found.shared, found.identical) == (4, True)
    assert found.distance is not None
    assert len(found.distance) == 5
    assert found.trajectories["newest"] is None
    empty = compare_runs(shorten(short.path, 0), whole)
    assert (empty.shared, empty.identical) == (0, False)
    assert empty.differences["success"].mean is None


def test_other_modules_have_no_distance(made: Path, tmp_path: Path) -> None:
    class Narrow(VectorWorld):
        @property
        def dim(self) -> int:
            return DIM - 1

        def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> Any:
            return super().evaluate(generation, np.pad(thetas, ((0, 0), (0, 0), (0, 1))))

    run(vector_config("search.generations=2"), Narrow(1), tmp_path)
    found = compare_runs(load_run(made / "uniform/1"), load_run(tmp_path))
    assert found.distance is None
    assert found.divergence["theta"] == 0
    assert not found.identical


curves = arrays(np.float64, st.integers(0, 12), elements=st.floats(-10, 10) | st.sampled_from([np.nan, np.inf]))


@given(curves, curves)
@settings(deadline=None)
def test_differences_are_those_of_the_shared_finite_generations(a: NDArray[Any], b: NDArray[Any]) -> None:
    found = differences(a, b)
    pairs = list(zip(a, b, strict=False))
    plain = [y - x if np.isfinite([x, y]).all() else None for x, y in pairs]
    middle = len(plain) // 2
    parts = (plain, plain[:middle], plain[middle:], plain[-5:])
    means = (found.mean, found.first_half, found.second_half, found.last_five)
    for part, mean in zip(parts, means, strict=True):
        finite = [value for value in part if value is not None]
        assert (mean is None) == (not finite)
        assert mean is None or mean == pytest.approx(sum(finite) / len(finite), abs=1e-9)
    assert sum(found.signs) == sum(value is not None for value in plain)


def test_folders_are_paired_by_seed(made: Path) -> None:
    a, b = folder(made, "uniform"), folder(made, "hard")
    found = compare_seeds(a, b[::-1])
    assert found.settings == {"search.arm": ("uniform", "hard")}
    assert found.facts == {}
    assert list(found.pairs) == [1, 2, 3]
    auc = found.contrasts["auc"]
    expected = [metrics.auc(y.array("success")) - metrics.auc(x.array("success")) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(auc.differences, expected, atol=1e-12)
    assert auc.p == sign_flip(expected).p
    assert all(found.holm_p[name] >= contrast.p for name, contrast in found.contrasts.items())  # type: ignore[operator]
    assert not found.identical
    assert compare_seeds(a, a).identical


def test_seeds_without_a_finished_partner_are_named(made: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(made / "hard", tmp_path / "hard"))
    shorten(root / "1", 4)
    shutil.rmtree(root / "2")
    found = compare_seeds(folder(made, "uniform"), [load_run(path) for path in find_runs(root)])
    assert list(found.pairs) == [3]
    assert found.left_out == {1: "half-finished in B (4 of 9)", 2: "missing in B"}
    shutil.rmtree(root / "3")
    with pytest.raises(ConfigError, match=r"share no seed that both have finished \(seed 1: half-finished in B"):
        compare_seeds(folder(made, "uniform"), [load_run(path) for path in find_runs(root)])


def test_folders_of_several_arms_or_a_seed_twice_are_refused(made: Path, tmp_path: Path) -> None:
    everything = [load_run(path) for path in find_runs(made)]
    with pytest.raises(ConfigError, match=r"search.arm = 'hard' and .* has 'soft'; name a folder with one arm"):
        compare_seeds(everything, everything)
    twice = [load_run(made / "soft/1"), load_run(Path(shutil.copytree(made / "soft/1", tmp_path / "again")))]
    with pytest.raises(ConfigError, match="both have seed 1; name a folder with one run per seed"):
        compare_seeds(twice, folder(made, "soft"))
