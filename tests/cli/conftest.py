"""A way to run commands as a person does, and small real runs to run them on."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_command import Command, Outcome

from nograd.cli import main
from nograd.run.config_source import load_config
from nograd.run.start import run_config
from tiny_models import save_tiny_chat


@pytest.fixture
def nograd(capsys: pytest.CaptureFixture[str]) -> Command:
    """nograd("run", "--seed", 2) -> what it printed and its exit status."""

    def command(*arguments: object) -> Outcome:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return command


@pytest.fixture(scope="session")
def synthetic_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run without a language model."""
    path = tmp_path_factory.mktemp("synthetic") / "run"
    run_config(load_config(None, ["evaluator=synthetic", "search.generations=6"]), path)
    return path


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random-weight model that answers nonsense."""
    return save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny", max_position_embeddings=4096)
