"""The run loop against a plain ask/tell loop, and what it tells its caller."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from vector_world import DIM, MODULES, VectorWorld, vector_config

from nograd.errors import ConfigError, RunError
from nograd.run.evaluators import Built, build_evaluator
from nograd.run.generation import GenerationRecord, read_generations
from nograd.run.load import load_run
from nograd.run.loop import run, search_settings
from nograd.search.arms import SCHEMES
from nograd.search.es import ask, init, tell
from nograd.search.evaluation import GenerationResult


class Recorded(VectorWorld):
    """Keeps the centers that it was asked to evaluate."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.centers: list[NDArray[np.float32]] = []

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        self.centers.append(thetas[0].copy())
        return super().evaluate(generation, thetas)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_runs_as_in_a_plain_loop(scheme: str, tmp_path: Path) -> None:
    arm = f"{scheme}:module=caller" if "module" in SCHEMES[scheme].options else scheme
    config = vector_config("search.generations=6", f"search.arm={arm}", "seed=3")
    world = Recorded(3)
    run(config, world, tmp_path)

    settings = search_settings(config, world)
    state = init(settings)
    records = read_generations(tmp_path)
    for generation in range(6):
        proposal = ask(settings, state, world.bottleneck(generation))
        result = VectorWorld(3).evaluate(generation, proposal.thetas)
        record = records[generation]
        assert record.allocation == tuple(proposal.allocation.pairs)
        assert record.credit_before == tuple(state.credit)
        assert [c.success for c in record.candidates] == [e.success for e in result.evaluations[1:]]
        state, update = tell(settings, state, proposal, result.evaluations)
        assert record.step_applied == tuple(update.step_norm)
        assert record.dropped == update.dropped
    theta = load_run(tmp_path).theta
    np.testing.assert_array_equal(theta[-1], state.theta)
    np.testing.assert_array_equal(theta[:-1], world.centers)


def test_candidates_are_described_by_what_was_moved(tmp_path: Path) -> None:
    seen: list[NDArray[np.float32]] = []

    class Watched(VectorWorld):
        def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
            seen.append(thetas)
            return super().evaluate(generation, thetas)

    config = vector_config("search.generations=1", "search.pairs=7")
    run(config, Watched(1), tmp_path)
    settings = search_settings(config, VectorWorld(1))
    proposal = ask(settings, init(settings))
    [record] = read_generations(tmp_path)
    numbers = dict.fromkeys(MODULES, 0)
    for row, candidate in enumerate(record.candidates, start=1):
        module = MODULES.index(candidate.module)
        moved = seen[0][row] - seen[0][0]
        expected = np.zeros((len(MODULES), DIM))
        expected[module] = candidate.sign * 0.3 * proposal.epsilon[(row - 1) // 2]
        np.testing.assert_allclose(moved, expected, atol=1e-6)
        assert candidate.pair == numbers[candidate.module] // 2
        numbers[candidate.module] += 1


def test_the_summary_is_of_the_written_generations(tmp_path: Path) -> None:
    config = vector_config("search.generations=8")
    summary = run(config, VectorWorld(1), tmp_path)
    success = load_run(tmp_path).array("success")
    untouched = VectorWorld(1).evaluate(0, np.zeros((1, len(MODULES), DIM), np.float32))
    assert summary.zero_theta_success == success[0] == untouched.evaluations[0].success
    assert summary.last5_success == pytest.approx(success[3:].mean())
    assert summary.auc == pytest.approx(success.mean())
    assert summary.final_success == success[7]
    assert summary.tokens == sum(100 + g + 10 for g in range(8))
    assert summary.requests_asked == 8 * 9 * 12 * 4
    assert 0 < summary.requests_computed < summary.requests_asked
    assert summary.peak_memory_bytes > 10_000_000
    assert summary.seconds > 0
    assert summary.run_dir == str(tmp_path)


def test_the_caller_hears_of_a_generation_once_it_is_written(tmp_path: Path) -> None:
    heard: list[GenerationRecord] = []

    def listen(record: GenerationRecord) -> None:
        assert read_generations(tmp_path)[-1].checkpoint == record.checkpoint
        assert (tmp_path / "checkpoints" / f"{record.generation:05d}.safetensors").exists()
        heard.append(record)

    run(vector_config("search.generations=3"), VectorWorld(1), tmp_path, on_generation=listen)
    assert [record.generation for record in heard] == [0, 1, 2]


def test_trajectories_of_the_first_and_the_newest_generation_are_kept(tmp_path: Path) -> None:
    run(vector_config("search.generations=3"), VectorWorld(1), tmp_path)
    record = load_run(tmp_path)
    for which, generation in (("first", 0), ("newest", 2)):
        result = VectorWorld(1).evaluate(generation, record.theta[generation : generation + 1])
        expected = [{"generation": generation, **row} for row in result.trajectories]
        assert record.trajectories(which) == expected


def test_lines_are_strict_json(tmp_path: Path) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(text)

    run(vector_config("search.generations=30"), VectorWorld(1), tmp_path)
    lines = (tmp_path / "generations.jsonl").read_text().splitlines()
    values = [json.loads(line, parse_constant=refuse) for line in lines]
    dropped = [value for value in values if value["dropped"]]
    assert dropped
    for value in dropped:
        pair = value["dropped"][0]
        assert None in [value["candidates"][2 * pair + i]["fitness"] for i in (0, 1)]
        assert any(pointer.startswith("/candidates/") for pointer in value["non_finite"])


def test_success_that_is_no_share_is_refused(tmp_path: Path) -> None:
    class Wrong(VectorWorld):
        def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
            result = super().evaluate(generation, thetas)
            center = replace(result.evaluations[0], success=float("nan"))
            return replace(result, evaluations=(center, *result.evaluations[1:]))

    with pytest.raises(RunError, match="success nan for the center in generation 0"):
        run(vector_config(), Wrong(1), tmp_path)
    assert read_generations(tmp_path) == []


def test_evaluators_are_built_by_name() -> None:
    builders = {"vector": lambda config: Built(VectorWorld(config.seed), {"world": "vector"})}
    built = build_evaluator(vector_config("seed=5"), builders)
    assert built.evaluator.modules == MODULES
    assert built.facts == {"world": "vector"}
    with pytest.raises(ConfigError, match="did you mean 'vector'"):
        build_evaluator(vector_config("evaluator=vectro"), builders)
