"""A small tuned run on a model that answers nonsense, and a server for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Running, running

from nograd.run.config_source import load_config
from nograd.run.load import RunRecord, load_run
from nograd.run.start import run_config
from nograd.serve.served import Served, load_served
from tiny_models import save_tiny_chat

SETTINGS = [
    "model.dtype=float32",
    "tasks.batch=2",
    "search.pairs=4",
    "search.generations=2",
    "search.lr=1",
    "search.clip=1",
    "subspace.dim=4",
    "subspace.injection=2.0",
    "execution.device=cpu",
]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny", max_position_embeddings=4096)


@pytest.fixture(scope="session")
def record(tmp_path_factory: pytest.TempPathFactory, model: Path) -> RunRecord:
    """A finished run of the four-stage agent."""
    path = tmp_path_factory.mktemp("runs") / "agent"
    run_config(load_config(None, [f"model.spec={model}", *SETTINGS]), path)
    return load_run(path)


@pytest.fixture(scope="session")
def served(record: RunRecord) -> Served:
    return load_served(record, device="cpu")


@pytest.fixture(scope="module")
def server(served: Served) -> Iterator[Running]:
    with running(served) as server:
        yield server
