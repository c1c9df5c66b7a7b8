"""Inert basis: it names the modules that change nothing, and only those."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from inert_subspaces import last_layer_scheduler, mute_scheduler
from tiny_setting import brief, tiny_setting

from nograd.agent.scheduler import Scheduler
from nograd.llm.engine import Engine
from nograd.llm.requests import Completion, CompletionRequest, Score, ScoreRequest
from nograd.preflight.decisive import decisive_tokens, margins
from nograd.preflight.finding import Finding
from nograd.preflight.inert_basis import inert_basis
from nograd.preflight.probe import probe
from nograd.preflight.setting import build_setting
from nograd.run.config_source import load_config
from tiny_models import save_tiny_chat, tiny_scheduler

STAGES = ("planner", "synthesizer")
ZERO = np.zeros(4, np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny")


def found(scheduler: Scheduler, *settings: str) -> dict[str | None, Finding]:
    setting = tiny_setting(scheduler, brief, settings=settings)
    return {finding.module: finding for finding in inert_basis(setting, probe(setting, pairs=2, tasks=2))}


def verdicts(findings: dict[str | None, Finding]) -> list[str]:
    return [findings[stage].verdict for stage in STAGES]


def test_random_unit_directions_on_the_last_layer_are_inert(folder: Path) -> None:
    """The paper's T1."""
    findings = found(last_layer_scheduler(folder, STAGES, strength=1e-4))
    assert verdicts(findings) == ["failed", "failed"]
    answer = findings["synthesizer"].figures
    assert answer["pairs_flipped"] == 0
    assert 0 < float(answer["change_largest"] or 0) < 0.01 * float(answer["margin_median"] or 0)
    assert findings["planner"].figures["decisive_tokens"] == 0
    assert "injection" in findings["planner"].advice


def test_only_the_module_that_changes_nothing_is_named(folder: Path) -> None:
    findings = found(mute_scheduler(folder, STAGES, mute=0), "search.sigma=1.0")
    assert verdicts(findings) == ["failed", "ok"]
    assert findings["synthesizer"].figures["pairs_flipped"] == 2
    assert float(findings["synthesizer"].figures["change_largest"] or 0) > 0.1


def test_margins_that_move_without_a_flip_are_a_warning(folder: Path) -> None:
    """A module whose decisive margin moves by more than a tenth of what is to be closed is not dead."""
    scheduler = tiny_scheduler(folder, STAGES)
    near, far = (found(scheduler, f"search.sigma={sigma}")["synthesizer"] for sigma in ("0.01", "1.0"))
    ratio = float(near.figures["change_largest"] or 0) / float(near.figures["margin_median"] or 1)
    assert near.verdict == ("ok" if near.figures["pairs_flipped"] else "warning" if ratio >= 0.1 else "failed")
    assert far.verdict == "ok"
    assert float(far.figures["change_median"] or 0) > 10 * float(near.figures["change_median"] or 1)


def test_a_decisive_token_is_where_greedy_decoding_leaves_gold(folder: Path) -> None:
    scheduler = tiny_scheduler(folder, STAGES)
    engine, zero = scheduler.engine, ZERO.tobytes()
    prompts = [tuple(scheduler.chat.encode_text(text)) for text in ("what is 1+1", "name a city", "why")]
    answers = engine.run([CompletionRequest(0, zero, prompt, 6) for prompt in prompts])
    kept = 3
    targets = [(*written(answer)[:kept], 17, 18, 19) for answer in answers]
    points = decisive_tokens(
        engine, [ScoreRequest(0, zero, p, t) for p, t in zip(prompts, targets, strict=True)], scheduler.chat.eos_ids
    )
    assert [p.prompt for p in points] == [p + t[:kept] for p, t in zip(prompts, targets, strict=True)]
    assert all(point.gold == 17 and point.top != (17,) for point in points)
    (found_margins,) = margins(engine, points, [ZERO])
    assert (found_margins > 0).all()
    for point, margin in zip(points, found_margins, strict=True):
        best = CompletionRequest(0, zero, point.prompt, 1)
        assert written(engine.run([best])[0]) == point.top
        others = [ScoreRequest(0, zero, point.prompt, (t,)) for t in (*point.top, point.gold)]
        top, gold = (score.mean for score in engine.run(others) if isinstance(score, Score))
        assert margin == top - gold


def test_gold_that_the_stage_writes_by_itself_has_no_decisive_token(folder: Path) -> None:
    scheduler = tiny_scheduler(folder, STAGES)
    engine, prompt, zero = scheduler.engine, tuple(scheduler.chat.encode_text("why")), ZERO.tobytes()
    target = written(engine.run([CompletionRequest(0, zero, prompt, 4)])[0])
    assert decisive_tokens(engine, [ScoreRequest(0, zero, prompt, target)], scheduler.chat.eos_ids) == []


def test_a_completion_that_ends_before_gold_departs_by_its_end(folder: Path) -> None:
    scheduler = tiny_scheduler(folder, STAGES)
    engine, prompt, zero = scheduler.engine, tuple(scheduler.chat.encode_text("why")), ZERO.tobytes()
    target = written(engine.run([CompletionRequest(0, zero, prompt, 4)])[0])
    assert isinstance(engine, Engine)
    engine.eos_ids = frozenset({target[-1], 0})
    first = target.index(target[-1])
    (point,) = decisive_tokens(
        engine, [ScoreRequest(0, zero, prompt, (*target[:first], 17, 18))], sorted({target[-1], 0})
    )
    assert (point.gold, set(point.top)) == (17, {target[-1], 0})
    assert margins(engine, [point], [ZERO])[0, 0] > 0


def test_without_a_language_model_it_is_left_out() -> None:
    setting = build_setting(load_config(None, ["evaluator=synthetic"]))
    (finding,) = inert_basis(setting, probe(setting))
    assert finding.verdict == "ok"
    assert "left out" in finding.sentence


@pytest.mark.real
def test_the_embedded_model_is_not_inert() -> None:
    config = load_config(None, ["execution.device=cpu", "search.pairs=4"])
    setting = build_setting(config)
    findings = inert_basis(setting, probe(setting, pairs=1, tasks=2))
    assert [f.verdict for f in findings if f.module in ("planner", "selector", "synthesizer")] == ["ok"] * 3


def written(answer: object) -> tuple[int, ...]:
    assert isinstance(answer, Completion)
    return answer.tokens
