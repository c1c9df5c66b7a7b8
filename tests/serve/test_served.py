"""What a run has to serve: which coefficients under which names, and which runs have none."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from running import running

import nograd
from nograd import Llm, Message, Task
from nograd.errors import ConfigError, RunError
from nograd.run.config_source import load_config
from nograd.run.load import RunRecord, load_run
from nograd.run.start import run_config
from nograd.serve.served import Served, check_served, load_served

SMALL = ("subspace.dim=4", "model.dtype=float32", "execution.device=cpu")


async def echo(task: Task, llm: Llm) -> str:
    draft = await llm.complete("first", [Message("user", task.question)], max_tokens=3)
    return (await llm.complete("base", [Message("user", draft.text)], max_tokens=2)).text


def own_run(model: Path, out: Path, stages: Sequence[str]) -> RunRecord:
    tasks = [{"question": "a?", "answer": "a"}, {"question": "b?", "answer": "b"}]
    nograd.tune(echo, tasks, stages, out=out, model=str(model), generations=1, pairs=2, progress=False, settings=SMALL)
    return load_run(out)


@pytest.mark.parametrize("generation", [None, 0, 1, 2])
def test_the_coefficients_of_a_generation(generation: int | None, record: RunRecord) -> None:
    served = load_served(record, generation, "cpu")
    expected = record.theta[2 if generation is None else generation]
    assert served.agent is not None
    for module, name in enumerate(record.modules):
        assert served.stages[name].module == module
        assert np.array_equal(np.frombuffer(served.stages[name].theta, np.float32), expected[module])
    assert np.array_equal(served.agent.thetas["tuned"], expected)
    assert not np.frombuffer(served.stages["base"].theta, np.float32).any()
    assert not served.agent.thetas["untouched"].any()
    assert len({theta.tobytes() for theta in record.theta}) == 3


@pytest.mark.parametrize("generation", [-1, 3])
def test_a_generation_that_is_not_there(generation: int, record: RunRecord) -> None:
    with pytest.raises(ConfigError, match=rf"after {generation} generations; choose from 0 \(untouched\) to 2"):
        check_served(record, generation)


def test_the_stages_of_an_own_agent_are_served_without_it(model: Path, tmp_path: Path) -> None:
    served = load_served(own_run(model, tmp_path / "own", ["first", "base"]), device="cpu")
    assert served.names == ("first", "base"), "a stage's own name goes before that of the untouched model"
    assert served.stages["base"].module == 1
    with running(served) as server:
        client = server.client()
        asked = [{"role": "user", "content": "a?"}]
        answer = client.chat.completions.create(model="first", messages=asked, max_tokens=3)  # type: ignore[arg-type]
        assert answer.usage is not None
        assert answer.usage.completion_tokens > 0
        for response in (
            server.post("/agent", json={"question": "a?"}),
            server.post("/v1/chat/completions", json={"model": "agent", "messages": asked}),
        ):
            assert response.status_code == 404
            assert response.json()["error"]["code"] == "no_agent"
            assert "ask its stages" in response.json()["error"]["message"]


def test_another_model_than_the_run_s_is_refused(model: Path, tmp_path: Path, record: RunRecord) -> None:
    own = own_run(model, tmp_path / "own", ["first", "base"])
    for path in (own.path, record.path):
        copy = tmp_path / "copy"
        shutil.copytree(path, copy, dirs_exist_ok=True)
        environment = (copy / "environment.json").read_text()
        fingerprint = load_run(copy).environment["identity"]["facts"]["fingerprint"]
        (copy / "environment.json").write_text(environment.replace(fingerprint, "0" * 64))
        with pytest.raises(RunError, match="fingerprint"):
            load_served(load_run(copy), device="cpu")


def test_a_run_without_a_language_model_is_refused(tmp_path: Path) -> None:
    run_config(load_config(None, ["evaluator=synthetic", "search.generations=1"]), tmp_path / "run")
    with pytest.raises(ConfigError, match="'synthetic', which has no language model to serve"):
        load_served(load_run(tmp_path / "run"))


def test_names(served: Served, record: RunRecord) -> None:
    assert served.names == (*record.modules, "base", "agent")
