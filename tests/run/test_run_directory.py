"""What a run directory refuses, recovers and detects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_bytes import run_bytes
from vector_world import VectorWorld, vector_config

from nograd.errors import ConfigError, NogradError, RunError
from nograd.run.load import load_run
from nograd.run.loop import run
from nograd.run.resume import changes, check_config

pytestmark = pytest.mark.filterwarnings("ignore:.*git")
CONFIG = vector_config("search.generations=4", "search.clip.caller=0.7")
FACTS = {"fingerprint": "abc", "dtype": "float32"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; copy it before changing it."""
    root = tmp_path_factory.mktemp("runs") / "finished"
    run(CONFIG, VectorWorld(1), root, facts=FACTS)
    return root


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def resume(root: Path, *overrides: str, facts: dict[str, str] = FACTS) -> None:
    config = vector_config("search.generations=4", "search.clip.caller=0.7", *overrides)
    run(config, VectorWorld(config.seed), root, facts=facts, resume=True)


def test_a_directory_in_use_is_refused_and_says_by_whom(tmp_path: Path) -> None:
    attempts: list[str] = []

    def second_run(_: object) -> None:
        with pytest.raises(RunError) as refused:
            run(CONFIG, VectorWorld(1), tmp_path, resume=True)
        attempts.append(str(refused.value))

    run(CONFIG, VectorWorld(1), tmp_path, on_generation=second_run)
    assert len(attempts) == 4
    assert f"in use by process {os.getpid()} on " in attempts[0]


def test_another_process_is_refused_too(tmp_path: Path) -> None:
    worker = Path(__file__).with_name("run_worker.py")
    errors: list[str] = []

    def start_worker(_: object) -> None:
        command = [sys.executable, str(worker), str(tmp_path), "search.generations=1"]
        errors.append(subprocess.run(command, capture_output=True, text=True, check=False).stderr)

    run(vector_config("search.generations=1"), VectorWorld(1), tmp_path, on_generation=start_worker)
    assert f"in use by process {os.getpid()}" in errors[0]


def test_a_directory_with_a_run_is_not_written_over(copied: Path) -> None:
    before = run_bytes(copied)
    with pytest.raises(RunError, match="already holds a run"):
        run(CONFIG, VectorWorld(1), copied, facts=FACTS)
    assert run_bytes(copied) == before


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("search.sigma=0.2", "search.sigma was 0.3 and is now 0.2"),
        ("search.arm=hard", "search.arm was 'uniform' and is now 'hard'"),
        ("search.generations=5", "search.generations was 4 and is now 5"),
        ("search.clip.caller=0.8", "search.clip.caller was 0.7 and is now 0.8"),
        ("model.revision=main", "model.revision was None and is now 'main'"),
        ("seed=2", "seed was 1 and is now 2"),
    ],
)
def test_changed_results_bearing_settings_are_refused_by_name(
    override: str, named: str, copied: Path
) -> None:
    before = run_bytes(copied)
    with pytest.raises(RunError) as refused:
        resume(copied, override)
    assert named in str(refused.value)
    assert run_bytes(copied) == before


def test_all_changed_settings_are_named_at_once(finished: Path) -> None:
    with pytest.raises(
        RunError, match=r"search\.lr was 0\.3 and is now 0\.1, search\.pairs was 4 and is now 8"
    ):
        check_config(
            finished,
            vector_config(
                "search.generations=4", "search.clip.caller=0.7", "search.lr=0.1", "search.pairs=8"
            ),
        )


def test_an_edited_config_file_is_refused(copied: Path) -> None:
    path = copied / "config.toml"
    path.write_text(path.read_text().replace("sigma = 0.3", "sigma = 0.4"))
    with pytest.raises(RunError, match=r"search\.sigma was 0\.3 and is now 0\.4"):
        load_run(copied)


def test_execution_may_change(copied: Path) -> None:
    before = run_bytes(copied)
    drop_generations(copied, keep=2)
    with pytest.warns(UserWarning, match=r"machine\.threads was None and is now 2"):
        resume(copied, "execution.threads=2")
    assert run_bytes(copied) == before


def test_another_model_is_refused(copied: Path) -> None:
    with pytest.raises(RunError, match=r"facts\.fingerprint was 'abc' and is now 'abd'"):
        resume(copied, facts={**FACTS, "fingerprint": "abd"})


def test_other_versions_are_a_warning_and_written_down(copied: Path) -> None:
    drop_generations(copied, keep=2)
    path = copied / "environment.json"
    environment = json.loads(path.read_bytes())
    environment["versions"]["nograd"] = "0.0.9"
    path.write_text(json.dumps(environment))
    with pytest.warns(UserWarning, match=r"versions\.nograd was '0\.0\.9'"):
        resume(copied)
    line = json.loads((copied / "resumed.jsonl").read_text())
    assert line["after_generations"] == 2
    assert line["changed"]["versions.nograd"][0] == "0.0.9"


def test_another_device_is_a_warning(copied: Path) -> None:
    drop_generations(copied, keep=3)
    with pytest.warns(UserWarning, match=r"machine\.device was 'auto' and is now 'cuda:0'"):
        run(CONFIG, VectorWorld(1), copied, facts=FACTS, machine={"device": "cuda:0"}, resume=True)


def test_resuming_a_finished_run_changes_nothing(copied: Path) -> None:
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    resume(copied)
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before


@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_a_torn_last_line_is_recovered(
    finished: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = Path(shutil.copytree(finished, tmp_path_factory.mktemp("torn") / "run"))
    path = root / "generations.jsonl"
    whole = path.read_bytes()
    last = len(whole) - whole[:-1].rfind(b"\n") - 1
    path.write_bytes(whole[: -data.draw(st.integers(1, last - 1))])
    assert len(load_run(root).generations) == 3
    resume(root)
    assert run_bytes(root) == run_bytes(finished)


@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_a_flipped_bit_in_a_checkpoint_is_detected(
    finished: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = Path(shutil.copytree(finished, tmp_path_factory.mktemp("flipped") / "run"))
    generation = data.draw(st.integers(0, 3))
    path = root / "checkpoints" / f"{generation:05d}.safetensors"
    damaged = bytearray(path.read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    for read in (load_run, resume):
        with pytest.raises(RunError, match=rf"{path.name} is damaged .* delete its generation's line"):
            read(root)
    drop_generations(root, keep=generation)
    resume(root)
    assert run_bytes(root) == run_bytes(finished)


def test_a_missing_checkpoint_is_detected(copied: Path) -> None:
    (copied / "checkpoints" / "00002.safetensors").unlink()
    with pytest.raises(RunError, match=r"00002\.safetensors cannot be read"):
        load_run(copied)


@pytest.mark.parametrize("damage", [b'{"generation":1}', b"not json", b"[]", b'{"x":NaN}', b"{}"])
def test_a_damaged_line_is_named(damage: bytes, copied: Path) -> None:
    path = copied / "generations.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], damage, *lines[2:]]))
    with pytest.raises(RunError, match=r"line 2 of .*generations\.jsonl is damaged"):
        load_run(copied)


def test_a_missing_line_is_noticed(copied: Path) -> None:
    path = copied / "generations.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], *lines[2:]]))
    with pytest.raises(RunError, match="line 2"):
        load_run(copied)


def test_what_cannot_be_a_run_directory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write"):
        run(CONFIG, VectorWorld(1), tmp_path / "file")
    with pytest.raises(RunError, match="holds no run"):
        load_run(tmp_path)


def test_the_configuration_must_fit_the_modules(tmp_path: Path) -> None:
    for override in ("search.clip.callr=1", "search.arm=lock:module=callr", "search.arm=uniform:floor=2"):
        with pytest.raises(ConfigError):
            run(vector_config(override), VectorWorld(1), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_every_error_is_for_people(copied: Path) -> None:
    """All refusals are NogradErrors that say what to do."""
    with pytest.raises(NogradError, match="start a new run in another directory"):
        resume(copied, "search.sigma=0.1")


def test_changes_name_the_leaves() -> None:
    then = {"a": {"b": 1, "c": [1, 2]}, "d": 0.5}
    now = {"a": {"b": 2, "c": [1, 2]}, "d": {"x": 1}}
    assert changes(then, now) == {"a.b": [1, 2], "d": [0.5, None], "d.x": [None, 1]}
    assert changes(then, then) == {}


def drop_generations(root: Path, keep: int) -> None:
    path = root / "generations.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in path.read_bytes().split(b"\n")[:keep]))
