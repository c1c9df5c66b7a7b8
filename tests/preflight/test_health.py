"""Task health: every check with a case that it must find and one that it must not."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_setting import FAMILY, SHORT, Changed, brief, tiny_setting

from nograd.agent.four_stage import STAGES, TokenLimits
from nograd.agent.scheduler import Llm, Scheduler
from nograd.agent.trajectory import Trajectory
from nograd.llm.requests import Completion, CompletionRequest, Score, ScoreRequest
from nograd.preflight.context import context
from nograd.preflight.determinism import determinism
from nograd.preflight.finding import Verdict
from nograd.preflight.gold import gold, token_limits
from nograd.preflight.health import blame_profile, headroom, resolution
from nograd.preflight.observed import Centers, Generation, centers
from nograd.search.evaluation import Evaluation, GenerationResult
from nograd.tasks.family import Task, ToolResult
from tiny_models import save_tiny_chat, tiny_scheduler


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Scheduler:
    made: Scheduler = tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model")), STAGES)
    return made


async def perfect(task: Task, llm: Llm) -> Trajectory:
    del llm
    return Trajectory(task.answer, (), {"selector": True, "caller": True})


def seen(*evaluations: Evaluation) -> Centers:
    results = tuple(GenerationResult((evaluation,)) for evaluation in evaluations)
    return Centers(results, results[0])


def center(success: float, reward: float, shaping: float = 0.0, blame: tuple[float, ...] | None = None) -> Evaluation:
    return Evaluation(reward + shaping, success, reward, blame)


@pytest.mark.parametrize(
    ("success", "reward", "shaping", "verdict"),
    [
        (0.2, 0.3, -1.0, "ok"),
        (0.0, 0.1, 0.0, "ok"),
        (0.94, 1.2, 0.0, "ok"),
        (0.95, 1.2, 0.0, "warning"),
        (1.0, 1.3, -1.0, "failed"),
        (0.0, -0.03, -1.0, "warning"),
        (0.0, 0.0, 0.0, "failed"),
    ],
)
def test_headroom(success: float, reward: float, shaping: float, verdict: Verdict) -> None:
    (finding,) = headroom(seen(*[center(success, reward, shaping)] * 2))
    assert finding.verdict == verdict
    assert bool(finding.advice) == (verdict != "ok")


def test_an_agent_that_cannot_fail_leaves_no_headroom_and_nobody_to_blame(scheduler: Scheduler) -> None:
    setting = tiny_setting(scheduler, perfect)
    untouched = centers(setting)
    assert len(untouched.results) == 6, "3 tasks a batch, 16 at least"
    assert headroom(untouched)[0].verdict == "failed"
    assert blame_profile(setting, untouched) == ()
    assert determinism(setting, untouched)[0].verdict == "ok"


def test_blame_is_weighted_by_the_failures(scheduler: Scheduler) -> None:
    setting = tiny_setting(scheduler)
    untouched = seen(center(0.75, 0.75, blame=(0, 1, 0, 0)), center(0.0, 0.0, blame=(0, 0, 0.5, 0.5)), center(1, 1))
    (finding,) = blame_profile(setting, untouched)
    assert finding.figures == pytest.approx(dict(zip(STAGES, (0, 0.2, 0.4, 0.4), strict=True)))
    assert finding.sentence.startswith("no single bottleneck")
    (one,) = blame_profile(setting, seen(center(0.5, 0.5, blame=(0, 0.1, 0.9, 0))))
    assert "one bottleneck, caller" in one.sentence


@given(st.integers(1, 200), st.integers(1, 200))
@settings(deadline=None)
def test_resolution(scheduler: Scheduler, batch: int, generations: int) -> None:
    changes = (f"tasks.batch={batch}", f"search.generations={generations}")
    (finding,) = resolution(tiny_setting(scheduler, settings=changes))
    assert finding.verdict == ("ok" if batch >= 8 else "warning")
    assert finding.figures == pytest.approx({"step": 1 / batch, "auc_step": 1 / (batch * generations)})


def test_the_agent_as_it_is_repeats_itself(scheduler: Scheduler) -> None:
    setting = tiny_setting(scheduler, brief)
    assert determinism(setting, centers(setting))[0].verdict == "ok"


def test_an_agent_with_luck_of_its_own_is_found(scheduler: Scheduler) -> None:
    calls = count()

    async def lucky(task: Task, llm: Llm) -> Trajectory:
        del llm
        return Trajectory(task.answer if next(calls) == 1 else "no")

    setting = tiny_setting(scheduler, lucky)
    (finding,) = determinism(setting, centers(setting))
    assert finding.verdict == "failed"
    assert finding.figures["trajectories"] == 1
    assert finding.advice


def test_one_bit_of_the_fitness_is_enough(scheduler: Scheduler) -> None:
    one, other = center(0.5, 0.1), center(0.5, float(np.nextafter(0.1, 1)))
    found = Centers((GenerationResult((one,)),), GenerationResult((other,)))
    assert determinism(tiny_setting(scheduler), found)[0].verdict == "failed"


def test_the_gold_of_the_family_passes(scheduler: Scheduler) -> None:
    (finding,) = gold(tiny_setting(scheduler))
    assert (finding.verdict, finding.figures["tasks"]) == ("ok", len(FAMILY.tasks))


FIRST, SECOND = FAMILY.tasks[:2]
WRONG: dict[str, tuple[Changed, str]] = {
    "checker": (Changed(succeeded=lambda task, answer: task.id != FIRST.id and bool(answer)), "is not accepted"),
    "tool": (Changed(call=lambda *_: ToolResult(ok=False, error="no such thing")), "its call fails (no such thing)"),
    "output": (Changed(call=lambda *_: ToolResult(ok=True, output="no")), "returns 'no'"),
    "arguments": (Changed(tasks=(replace(FIRST, arguments={"value": 2**60}), SECOND)), "its call is refused"),
}


@pytest.mark.parametrize("case", WRONG)
def test_gold_that_fails_is_named(case: str, scheduler: Scheduler) -> None:
    family, why = WRONG[case]
    (finding,) = gold(tiny_setting(scheduler, family=family))
    assert finding.verdict == "failed"
    assert FIRST.id in finding.sentence
    assert why in finding.sentence
    failing = {"checker": 1, "tool": 32, "output": 32, "arguments": 1}
    assert finding.figures["failing"] == failing[case]


def test_tasks_without_a_tool_are_only_answered(scheduler: Scheduler) -> None:
    family = Changed(call=lambda *_: ToolResult(ok=False), tasks=tuple(replace(t, tool="") for t in FAMILY.tasks))
    (finding,) = gold(tiny_setting(scheduler, perfect, family))
    assert finding.verdict == "ok"


def test_gold_that_does_not_fit_the_token_limit(scheduler: Scheduler) -> None:
    """The tiny model's tokens are characters."""
    by_stage = {finding.module: finding for finding in token_limits(tiny_setting(scheduler, limits=SHORT))}
    assert [by_stage[stage].verdict for stage in STAGES[1:]] == ["ok", "failed", "ok"]
    caller = by_stage["caller"]
    longest = caller.figures["longest"]
    assert longest == max(len(str(dict(task.arguments)).replace("'", '"')) for task in FAMILY.tasks)
    assert f"agent.token_limits.caller to {longest}" in caller.advice
    raised = tiny_setting(scheduler, limits=TokenLimits(4, 16, int(str(longest)), 16))
    assert all(finding.verdict == "ok" for finding in token_limits(raised))


def test_limits_of_an_own_agent_are_not_known(scheduler: Scheduler) -> None:
    (finding,) = token_limits(tiny_setting(scheduler, perfect))
    assert "left out" in finding.sentence


def exchanged(prompt: int, answer: int) -> Generation:
    asked = CompletionRequest(2, b"", tuple(range(prompt)), answer)
    scored = ScoreRequest(1, b"", (1, 2), (3, 4))
    return Generation(GenerationResult(()), 1.0, {scored: Score(np.zeros(2)), asked: Completion((), "stop")})


@pytest.mark.parametrize(("length", "verdict"), [(1843, "ok"), (1844, "warning"), (2048, "warning"), (2049, "failed")])
def test_prompts_near_the_context_limit(length: int, verdict: Verdict, scheduler: Scheduler) -> None:
    (finding,) = context(tiny_setting(scheduler), exchanged(length - 40, 40))
    assert finding.verdict == verdict
    assert finding.module == (None if verdict == "ok" else "caller")
    assert finding.figures["longest"] == length
