"""Run directories as bytes: what changed, and that it is written in an order that a kill cannot spoil."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_bytes import run_bytes
from vector_world import VectorWorld, vector_config

from nograd.run.files import write_atomic
from nograd.run.loop import run
from nograd.study.copying import Changes, restore, snapshot


def test_a_copy_follows_its_run(tmp_path: Path) -> None:
    config = vector_config("search.generations=3")
    here, there = tmp_path / "here", tmp_path / "there"
    changes = Changes(here)
    sizes = []

    def send(_: object) -> None:
        files = changes.take()
        sizes.append(len(files))
        restore(there, files)

    run(config, VectorWorld(1), here, on_generation=send)
    assert run_bytes(there) == run_bytes(here)
    assert sizes[1] < sizes[0]
    assert changes.take() == {}


def test_every_kill_while_copying_leaves_a_run_that_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = vector_config("search.generations=3")
    run(config, VectorWorld(1), tmp_path / "whole")
    files = snapshot(tmp_path / "whole")
    for survivors in range(len(files)):
        copy = tmp_path / str(survivors)
        left = iter(range(survivors))

        def dying(path: Path, data: bytes, left: object = left) -> None:
            if next(left, None) is None:  # type: ignore[call-overload]
                raise KeyboardInterrupt
            write_atomic(path, data)

        with monkeypatch.context() as patch:
            patch.setattr("nograd.study.copying.write_atomic", dying)
            with pytest.raises(KeyboardInterrupt):
                restore(copy, files)
        run(config, VectorWorld(1), copy, resume=True)
        assert run_bytes(copy) == run_bytes(tmp_path / "whole"), survivors


def test_no_directory_is_no_files(tmp_path: Path) -> None:
    assert snapshot(tmp_path / "none") == {}
