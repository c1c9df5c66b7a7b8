"""Plans: those that come with nograd, anyone's own, everything that can be wrong with one, scaling, seeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_world import write_plan

from nograd.errors import ConfigError
from nograd.search.schemes import ROUTES
from nograd.study.cells import cells, rollouts
from nograd.study.metrics import check_metric
from nograd.study.paper_ledger import HITS, MISSES, SCORED, Published, published
from nograd.study.plan_file import load_plan, make_plan, plan_names
from nograd.study.scaling import Scaling, merged
from nograd.study.seeds import format_seeds, parse_seeds

IN_THE_PAPER = {
    "prestudy": (200, 120),
    "main": (32, 45),
    "seed-extension": (24, 45),
    "credit-noise": (32, 45),
    "sparse": (16, 45),
    "floor": (18, 45),
    "doubled-budget": (15, 45),
    "shaping-1": (18, 45),
    "shaping-0": (3, 45),
    "qwen-3b": (24, 30),
    "smollm2-1.7b": (24, 30),
    "bfcl-main": (24, 30),
    "bfcl-floor": (18, 30),
    "held-out": (24, None),
    "lock-probes": (16, 30),
    "binding": (24, 45),
    "clip-capacity": (24, 45),
    "ipw": (18, 45),
    "basis": (18, 45),
    "burst": (24, 45),
}
"""Plan → cells and generations (paper §5, Table 7)."""


@pytest.mark.parametrize("name", plan_names())
def test_every_plan_is_sound(name: str) -> None:
    file = load_plan(name)
    planned = cells(file.plan)
    assert len({cell.folder for cell in planned}) == len(planned)
    assert all(cell.config.search.arm.partition(":")[0] in ROUTES for cell in planned)
    assert rollouts(file.plan) > 0
    assert file.plan.paper


def test_every_experiment_of_the_paper_has_a_plan() -> None:
    for name, (count, generations) in IN_THE_PAPER.items():
        planned = cells(load_plan(name).plan)
        assert len(planned) == count, name
        if generations is not None:
            assert {cell.config.search.generations for cell in planned} == {generations}, name


def test_rollouts_count_every_candidate_on_the_whole_batch() -> None:
    assert rollouts(load_plan("main").plan) == 8 * 4 * 45 * (1 + 2 * 4) * 16
    assert rollouts(load_plan("bfcl-floor").plan) == 6 * 3 * 30 * (1 + 2 * 6) * 12
    assert rollouts(load_plan("held-out").plan) == 6 * 4 * (1 + 3) * 96


def test_the_paper_s_ledger_fits_its_counts_and_the_plans() -> None:
    rows = published()
    outcomes = [row.outcome for row in rows]
    assert (SCORED, outcomes.count("miss")) == (HITS + MISSES, MISSES)
    assert outcomes.count("hit") == HITS - 2
    predicted = {
        (name, prediction.id): prediction for name in plan_names() for prediction in load_plan(name).plan.predictions
    }
    for row in rows:
        assert not row.prediction or (row.plan, row.prediction) in predicted
    listed = {(row.plan, row.prediction) for row in rows}
    ours = {"prestudy", "bandit", "burst-spread", "echo", "held-out-curves", "per-layer"}
    assert {key for key in predicted if key[0] not in ours} <= listed


@pytest.mark.parametrize("row", [row for row in published() if row.observed is not None and row.prediction])
def test_published_outcomes_follow_from_the_criteria(row: Published) -> None:
    predictions = load_plan(row.plan).plan.predictions
    prediction = next(prediction for prediction in predictions if prediction.id == row.prediction)
    first = prediction.criteria[0]
    low = float("-inf") if first.low is None else first.low
    high = float("inf") if first.high is None else first.high
    assert row.observed is not None
    holds = low <= row.observed <= high
    assert prediction.scored == (row.outcome != "not scored")
    if row.outcome == "hit":
        assert holds
    elif row.outcome == "miss" and len(prediction.criteria) == 1:
        assert not holds


def test_scaling_reaches_every_arm(tmp_path: Path) -> None:
    plan = write_plan(tmp_path).plan
    scaling = Scaling(model="tiny", seeds=(4, 7), generations=2, batch=3)
    scaled = cells(plan, scaling)
    assert [(cell.label, cell.seed) for cell in scaled] == [(label, seed) for seed in (4, 7) for label in plan.arms]
    for cell in scaled:
        assert (cell.config.model.spec, cell.config.model.revision) == ("tiny", None)
        assert (cell.config.search.generations, cell.config.tasks.batch) == (2, 3)
    assert rollouts(plan, scaling) == 2 * 3 * 2 * 9 * 3
    assert all(cell.config.model.revision is None for cell in cells(load_plan("main").plan, scaling))


def test_arms_differ_in_what_they_say_and_nothing_else(tmp_path: Path) -> None:
    uniform, hard, locked = cells(write_plan(tmp_path, seeds="3").plan)
    search = {"search": uniform.config.search}
    assert hard.config.model_copy(update=search) == uniform.config
    assert hard.config.search.model_copy(update={"arm": "uniform"}) == uniform.config.search
    assert (locked.config.search.clip, uniform.config.search.clip) == (0.1, 0.5)


def test_a_replay_cannot_be_scaled_where_it_has_no_say() -> None:
    with pytest.raises(ConfigError, match="leave out the model and the generations"):
        cells(load_plan("held-out").plan, Scaling(model="tiny"))


def test_merging_keeps_both_and_prefers_the_upper() -> None:
    below = {"search": {"pairs": 4, "clip": 0.5}, "seed": 1}
    assert merged(below, {"search": {"clip": {"caller": 1.0}}, "model": {"spec": "x"}}) == {
        "search": {"pairs": 4, "clip": {"caller": 1.0}},
        "seed": 1,
        "model": {"spec": "x"},
    }
    assert below == {"search": {"pairs": 4, "clip": 0.5}, "seed": 1}


def test_all_mistakes_of_form_are_said_at_once() -> None:
    values = {
        "title": "x",
        "baselin": "u",
        "seeds": "1-3,2",
        "arms": {"a b": "uniform"},
        "predictions": [{"id": "q", "claim": "c", "criteria": [{"of": "a", "metricc": "auc"}]}],
    }
    with pytest.raises(ConfigError) as caught:
        make_plan(values, "own.toml")
    text = str(caught.value)
    for part in (
        "own.toml has 6 mistakes:",
        "baseline is missing; add it",
        "overlap: 2 come twice",
        "an arm's label is made of letters",
        "predictions.0.why is missing",
        "metricc: unknown key; did you mean metric?",
        "baselin: unknown key; did you mean baseline?",
    ):
        assert part in text, part


def test_all_mistakes_of_meaning_are_said_at_once() -> None:
    prediction = {"claim": "c", "why": "w"}
    values = {
        "title": "x",
        "baseline": "u",
        "seeds": [1, 2],
        "arms": {"a": "unifrm", "A": {"arm": "soft", "baseline": "b", "searc": {"clip": 1}}},
        "predictions": [
            prediction | {"id": "q", "criteria": [{"of": "z", "metric": "acu", "statistic": "p"}]},
            prediction | {"id": "q", "criteria": [{"of": "a", "low": 2.0, "high": 1.0, "pooled": True}]},
        ],
    }
    with pytest.raises(ConfigError) as caught:
        make_plan(values, "own.toml")
    text = str(caught.value)
    for part in (
        "baseline = 'u': the plan has no such arm; it has a, A",
        "arms.A.baseline = 'b': the plan has no such arm",
        "arms 'a' and 'A' would share a folder",
        "arm 'a': search.arm = 'unifrm': unknown scheme 'unifrm'; did you mean 'uniform'?",
        "arm 'A': searc = {'clip': 1}: unknown key; did you mean search?",
        "prediction 'q': arm 'z': the plan has no such arm",
        "nothing could miss it",
        "is about a difference; name the arm to subtract",
        "unknown metric 'acu'; did you mean 'auc'?",
        "prediction id 'q' is there twice",
        "low = 2.0 is above high = 1.0",
        "pooled = true needs `extends`",
    ):
        assert part in text, part


def test_unknown_and_unreadable_plans(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown plan 'mian'; did you mean 'main'.*give the path of a .toml"):
        load_plan("mian")
    with pytest.raises(ConfigError, match="No such file or directory; check the path"):
        load_plan(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        load_plan(str(tmp_path / "bad.toml"))


@given(st.sets(st.integers(0, 300), min_size=1))
@settings(deadline=None)
def test_seeds_go_to_text_and_back(seeds: set[int]) -> None:
    ordered = tuple(sorted(seeds))
    assert parse_seeds(format_seeds(ordered)) == ordered


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=5))
@settings(deadline=None)
def test_ranges_that_overlap_are_refused_and_others_joined(ranges: list[tuple[int, int]]) -> None:
    text = ", ".join(f"{start}-{start + more}" for start, more in ranges)
    named = [seed for start, more in ranges for seed in range(start, start + more + 1)]
    if len(set(named)) == len(named):
        assert parse_seeds(text) == tuple(sorted(named))
    else:
        with pytest.raises(ConfigError, match=r"overlap: .* come twice; name each seed once"):
            parse_seeds(text)


@pytest.mark.parametrize("text", ["", "1-", "a", "1,,2", "8-1", "1-99999"])
def test_what_names_no_seeds(text: str) -> None:
    with pytest.raises(ConfigError, match="does not name seeds"):
        parse_seeds(text)


@pytest.mark.parametrize("metric", ["starvation:", "nothing", "auc:caller", "starvation"])
def test_unknown_metrics(metric: str) -> None:
    with pytest.raises(ConfigError):
        check_metric(metric)
