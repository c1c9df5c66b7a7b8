"""A folder as the pages suppose it: the files of `nograd init`, finished runs and a sweep; and a server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nograd.cli.main import main
from tiny_models import save_tiny_chat

TINY = [
    "--set", "subspace.dim=4", "--set", "model.dtype=float32", "--set", "tasks.batch=2",
    "--set", "execution.progress=false", "--generations", "2", "--pairs", "4",
]  # fmt: skip
SYNTHETIC = ["--set", "evaluator=synthetic", "--set", "tasks.family=synthetic", "--seeds", "1-3", "--generations", "3"]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """runs/shop and runs/demo of a tiny model, sweeps/main of the synthetic environment."""
    folder = tmp_path_factory.mktemp("docs") / "world"
    model = save_tiny_chat(folder.parent / "tiny", max_position_embeddings=4096)
    assert main(["init", str(folder)]) == 0
    for name, config in (("shop", [str(folder / "nograd.toml")]), ("demo", [])):
        assert main(["run", *config, *TINY, "--model", str(model), "--out", str(folder / "runs" / name)]) == 0
    assert main(["sweep", "main", *SYNTHETIC, "--out", str(folder / "sweeps" / "main")]) == 0
    return folder


@pytest.fixture
def folder(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the world, and the current folder."""
    shutil.copytree(world, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture(scope="session")
def server(world: Path) -> Iterator[str]:
    """The address of `nograd serve runs/shop`, without a path."""
    words = [sys.executable, "-c", "import nograd.cli; nograd.cli.main()", "serve", "runs/shop", "--port", "0"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, cwd=world, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        line = next((each for each in process.stdout if " at http://" in each), "")
        assert line, "the server did not start"
        yield line.partition(" at ")[2].partition("/v1")[0]
        process.terminate()
