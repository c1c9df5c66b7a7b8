"""The content of a run directory, ready to be compared: every byte but the timings."""

from __future__ import annotations

import json
import re
from pathlib import Path

TIMINGS = re.compile(rb'"seconds":\{[^}]*\}')
NOT_RESULTS = {"resumed.jsonl", ".lock"}
"""Who resumed when, and the lock; they differ by their nature. No other file may be left over."""


def run_bytes(root: Path) -> dict[str, bytes]:
    """Path → bytes of all files; without the state of the source tree, which may change while tests run."""
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    environment = json.loads(files["environment.json"])
    del environment["git"]
    files["environment.json"] = json.dumps(environment).encode()
    files["generations.jsonl"] = TIMINGS.sub(b"", files["generations.jsonl"])
    return {name: data for name, data in files.items() if name not in NOT_RESULTS}
