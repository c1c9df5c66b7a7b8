"""What a run will cost, and how many seeds a claim of equivalence takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_setting import brief, tiny_setting

from nograd.agent.four_stage import STAGES
from nograd.preflight.cost import cost
from nograd.preflight.observed import Centers, Generation, centers, first_generation
from nograd.preflight.power import binomial_spread, finished, observed_spread, power
from nograd.preflight.setting import Setting, build_setting
from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.run.start import run_config
from nograd.search.evaluation import Evaluation, GenerationResult
from nograd.stats.power import tost_power
from tiny_models import save_tiny_chat, tiny_scheduler


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return tiny_setting(tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model")), STAGES), brief)


def test_cost_in_closed_form(setting: Setting) -> None:
    """Five generations are planned."""
    counts = {"requests_asked": 90, "requests_computed": 30, "tokens_prefilled": 1000, "tokens_decoded": 234}
    result = GenerationResult((Evaluation(0, 0, 0),) * 9, counts)
    (finding,) = cost(setting, Generation(result, 120.0))
    assert finding.verdict == "ok"
    assert finding.figures == {"seconds_per_generation": 120.0, "seconds": 600.0, "candidates": 9, **counts}
    for part in ("120.0 s", "1,234 tokens (30 of 90 requests computed)", "10 min 0 s", "6,170 tokens"):
        assert part in finding.sentence


def test_cost_where_there_are_no_tokens(setting: Setting) -> None:
    (finding,) = cost(setting, Generation(GenerationResult((Evaluation(0, 0, 0),) * 9), 2.0))
    assert finding.sentence == "a generation takes 2.0 s; 5 generations about 10 s"


def test_a_generation_is_that_of_the_run(setting: Setting) -> None:
    """All candidates on the whole batch, and every request with its answer."""
    generation = first_generation(setting)
    assert len(generation.result.evaluations) == 1 + 2 * setting.settings.pairs
    assert generation.seconds > 0
    assert generation.result.counts["requests_computed"] == len(generation.exchanges) > 0
    assert generation.result.evaluations[0].fitness == centers(setting).evaluations[0].fitness
    assert {request.module for request in generation.exchanges} == {0, 3}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished runs of three seeds of two arms, one of another clip, one of another length."""
    folder = tmp_path_factory.mktemp("runs")
    for arm in ("uniform", "hard"):
        for seed in (1, 2, 3):
            run_config(synthetic(f"search.arm={arm}", f"seed={seed}"), folder / f"{arm}-{seed}")
    run_config(synthetic("search.clip=0.4", "seed=4"), folder / "clip")
    run_config(synthetic("search.generations=5", "seed=5"), folder / "longer")
    return folder


def synthetic(*settings: str) -> RunConfig:
    return load_config(None, ["evaluator=synthetic", "search.generations=4", *settings])


def test_only_runs_that_differ_in_seed_and_arm_are_used(runs: Path) -> None:
    found = finished(synthetic("seed=9", "search.arm=random"), runs)
    assert {arm: sorted(by_seed) for arm, by_seed in found.items()} == {"uniform": [1, 2, 3], "hard": [1, 2, 3]}
    assert finished(synthetic(), runs / "nowhere") == {}


def test_an_unfinished_run_is_not_used(runs: Path) -> None:
    lines = (runs / "hard-3" / "generations.jsonl").read_bytes()
    (runs / "hard-3" / "generations.jsonl").write_bytes(b"".join(lines.splitlines(keepends=True)[:-1]))
    found = finished(synthetic(), runs)
    (runs / "hard-3" / "generations.jsonl").write_bytes(lines)
    assert sorted(found["hard"]) == [1, 2]


def test_the_spread_of_three_sources() -> None:
    first, second = {1: 0.5, 2: 0.7, 3: 0.6}, {1: 0.4, 2: 0.8, 3: 0.6}
    paired = observed_spread({"a": first, "b": second})
    assert paired is not None
    assert paired.sd == pytest.approx(np.std([0.1, -0.1, 0.0], ddof=1))
    assert "paired" in paired.source
    alone = observed_spread({"a": first, "b": {9: 0.1}})
    assert alone is not None
    assert alone.sd == pytest.approx(np.sqrt(2) * np.std([0.5, 0.7, 0.6], ddof=1))
    assert observed_spread({"a": {1: 0.5}, "b": {2: 0.5}}) is None
    luck = binomial_spread(0.5, 16, 45)
    assert luck.sd == pytest.approx(np.sqrt(2 * 0.25 / 720))
    assert "binomial" in luck.source


def test_pairs_of_arms_are_pooled_about_their_own_means() -> None:
    aucs = {"a": {1: 0.1, 2: 0.3}, "b": {1: 0.5, 2: 0.5}, "c": {1: 0.9, 2: 0.8}}
    differences = np.array([[-0.4, -0.2], [-0.8, -0.5], [-0.4, -0.3]])
    squares = ((differences - differences.mean(axis=1, keepdims=True)) ** 2).sum()
    found = observed_spread(aucs)
    assert found is not None
    assert found.sd == pytest.approx(np.sqrt(squares / 3))


@given(st.floats(0, 1), st.integers(1, 64), st.integers(1, 200))
@settings(deadline=None, max_examples=40)
def test_luck_always_has_a_spread(success: float, batch: int, generations: int) -> None:
    assert 0 < binomial_spread(success, batch, generations).sd <= np.sqrt(0.5 / (batch * generations)) + 1e-12


def test_seeds_are_those_that_reach_the_power(setting: Setting, tmp_path: Path) -> None:
    center = GenerationResult((Evaluation(0.3, 0.3, 0.3),))
    (finding,) = power(setting, Centers((center,), center), tmp_path)
    seeds, sd = finding.figures["seeds"], finding.figures["sd"]
    assert isinstance(seeds, int)
    assert isinstance(sd, float)
    assert tost_power(seeds, sd) >= 0.8 > tost_power(seeds - 1, sd)
    assert finding.sentence.startswith(f"{seeds} seeds to certify")
    assert "no finished run" in finding.sentence


def test_seeds_by_finished_runs(runs: Path) -> None:
    setting = build_setting(synthetic())
    center = GenerationResult((Evaluation(0.3, 0.3, 0.3),))
    (finding,) = power(setting, Centers((center,), center), runs)
    assert "paired differences of 2 arms in finished runs" in finding.sentence
