"""The BFCL entries, and the checker of the wheel they come from."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from nograd.assets import BFCL_WHEEL, cache_dir
from nograd.errors import AssetError
from nograd.tasks.bfcl.data import Entry, load_entries

Oracle = Callable[[Any, Any, Any], dict[str, Any]]


@pytest.fixture(scope="session")
def entries() -> tuple[Entry, ...]:
    try:
        return load_entries()
    except AssetError as error:
        pytest.skip(f"BFCL cannot be fetched: {error}")


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """oracle(function, calls, ground_truth) is the original checker's answer.

    It is imported straight from the wheel; a stub stands for the module that would import model handlers."""
    stub = ModuleType("bfcl_eval.constants.model_config")
    stub.MODEL_CONFIG_MAPPING = {"any": SimpleNamespace(underscore_to_dot=False)}  # type: ignore[attr-defined]
    sys.modules[stub.__name__] = stub
    sys.path.insert(0, str(_wheel()))
    try:
        original = import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
        python = import_module("bfcl_eval.constants.enums").Language.PYTHON
        yield lambda function, calls, truth: original(
            [function], calls, truth, python, "simple_python", "any"
        )
    finally:
        sys.path.pop(0)
        for name in [name for name in sys.modules if name.split(".")[0] == "bfcl_eval"]:
            del sys.modules[name]


def _wheel() -> Path:
    """The pinned wheel, fetched with pip into the cache; skips the test where pip cannot."""
    path = cache_dir() / "oracle" / BFCL_WHEEL.filename
    if not path.exists():
        pinned = f"{BFCL_WHEEL.package}=={BFCL_WHEEL.version}"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", pinned, "-d", str(path.parent)]
        fetched = subprocess.run(command, capture_output=True, text=True, check=False)
        if fetched.returncode != 0:
            pytest.skip(f"{pinned} cannot be fetched: {fetched.stderr.strip()[-200:]}")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == BFCL_WHEEL.sha256
    return path
