"""Company noise: none of the engine's, and what an engine that depends on its batch is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from tiny_setting import brief, tiny_setting

from nograd.agent.four_stage import STAGES
from nograd.agent.scheduler import Llm, Scheduler
from nograd.agent.trajectory import Trajectory
from nograd.llm.engine import Engine
from nograd.llm.requests import Completion, EngineCounts, Request, RequestEngine, Result, Score
from nograd.preflight import noise as module
from nograd.preflight.noise import SAMPLE, noise
from nograd.preflight.observed import Generation, first_generation
from nograd.preflight.setting import Setting
from nograd.tasks.family import Task
from tiny_models import save_tiny_chat, tiny_scheduler


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return tiny_setting(tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model")), STAGES), brief)


@pytest.fixture(scope="module")
def generation(setting: Setting) -> Generation:
    return first_generation(setting)


def test_the_engine_has_none(setting: Setting, generation: Generation) -> None:
    (finding,) = noise(setting, generation)
    assert finding.verdict == "ok"
    figures = dict(finding.figures)
    assert figures.pop("completions") + figures.pop("scores") == SAMPLE  # type: ignore[operator]
    assert len(figures) == 8
    assert not any(figures.values())


def test_bits_that_depend_on_the_batch_fail_on_a_cpu_and_are_a_floor_elsewhere(
    setting: Setting, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert setting.agent is not None
    engine = setting.agent.scheduler.engine
    assert isinstance(engine, Engine)
    honest = engine.run

    def crowded(requests: Sequence[Request]) -> list[Result]:
        moved = 1e-12 * len(requests)
        return [
            Score(result.log_probabilities + moved) if isinstance(result, Score) else result
            for result in honest(requests)
        ]

    monkeypatch.setattr(engine, "run", crowded)
    (finding,) = noise(setting, generation)
    assert finding.verdict == "failed"
    assert finding.figures["log_probabilities_alone"] == finding.figures["scores"]
    assert finding.figures["tokens_alone"] == 0
    assert finding.advice
    monkeypatch.setattr(module, "device_of", lambda _setting: "cuda")
    (elsewhere,) = noise(setting, generation)
    assert elsewhere.verdict == "warning"
    assert elsewhere.sentence == finding.sentence
    assert f"{finding.figures['scores']} of {finding.figures['scores']} scores" in elsewhere.sentence


@dataclass
class Crowded:
    """An engine whose completions lose a token in company."""

    engine: RequestEngine
    counts: EngineCounts

    def run(self, requests: Sequence[Request]) -> list[Result]:
        results = self.engine.run(requests)
        return [self._cut(result) if len(requests) > 1 else result for result in results]

    def forget(self) -> None:
        self.engine.forget()

    @staticmethod
    def _cut(result: Result) -> Result:
        return Completion(result.tokens[1:], result.finish) if isinstance(result, Completion) else result


def test_tokens_that_depend_on_the_batch_are_counted(setting: Setting, generation: Generation) -> None:
    assert setting.agent is not None
    scheduler = setting.agent.scheduler
    crowded = Scheduler(Crowded(scheduler.engine, EngineCounts()), scheduler.chat, STAGES)
    (finding,) = noise(tiny_setting(crowded, brief), generation)
    assert finding.verdict == "failed"
    assert finding.figures["tokens_shuffled"] == 0
    assert 0 < finding.figures["tokens_alone"] <= finding.figures["completions"]  # type: ignore[operator]
    assert finding.figures["log_probabilities_alone"] == 0
    assert "when alone" in finding.sentence


def test_an_agent_that_asks_nothing(setting: Setting) -> None:
    async def silent(task: Task, llm: Llm) -> Trajectory:
        del llm
        return Trajectory(task.answer)

    assert setting.agent is not None
    quiet = tiny_setting(setting.agent.scheduler, silent)
    (finding,) = noise(quiet, first_generation(quiet))
    assert (finding.verdict, finding.sentence) == ("ok", "the agent asked nothing")
