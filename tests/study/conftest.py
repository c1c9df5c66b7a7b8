"""The cheap world of tests/run serves here too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "run"))


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marker of the cluster tests means."""
    config.addinivalue_line("markers", "ray: starts a local Ray cluster (half a minute)")
