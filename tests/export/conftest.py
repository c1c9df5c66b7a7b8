"""Folders of tiny models, made once, and a small run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nograd import Llm, Message, Step, Task, Trajectory
from nograd.run.tune import tune
from tiny_models import LAYOUTS, save_tiny, save_tiny_chat


@pytest.fixture(scope="session")
def model_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """model_of(layout) -> the folder of a tiny model of that layout."""
    root = tmp_path_factory.mktemp("layouts")

    def made(layout: str) -> Path:
        folder = root / layout.replace(" ", "-")
        if not folder.exists():
            save_tiny(folder, LAYOUTS[layout])
        return folder

    return made


async def two_stages(task: Task, llm: Llm) -> Trajectory:
    draft = await llm.complete("plan it", [Message("user", task.question)], max_tokens=3)
    turn = [Message("user", task.question + draft.text)]
    answer = await llm.complete("answer", turn, max_tokens=2)
    gold = await llm.score("answer", turn, task.answer)
    steps = (Step("plan it", draft.text), Step("answer", answer.text))
    return Trajectory(answer.text, steps, log_probabilities={"answer": gold})


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three generations on a tiny chat model, in bfloat16; its first stage's name is no folder's name."""
    root = tmp_path_factory.mktemp("tuned")
    model = save_tiny_chat(root / "tiny", tie_word_embeddings=True)
    tasks = [{"question": f"{letter}?", "answer": letter} for letter in "abc"]
    settings = ["subspace.dim=4", "model.dtype=bfloat16"]
    tune(
        two_stages,
        tasks,
        ["plan it", "answer"],
        out=root / "run",
        model=str(model),
        generations=3,
        pairs=2,
        shaping=0.5,
        settings=settings,
        progress=False,
    )
    return root / "run"
