"""A process of its own: how long nograd takes to start, and the most memory it takes for one generation.

`python -m nograd.bench.alone DTYPE DEVICE PAIRS BATCH` prints one line of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from time import perf_counter
from typing import Any

_BEGIN = perf_counter()


def measure(dtype: str, device: str, pairs: int, batch: int) -> dict[str, Any]:
    """Start a process that loads everything and runs one generation. Keys: start_s, peak_memory_bytes,
    cache_bytes (of keys and values that were in use)."""
    command = [sys.executable, "-m", "nograd.bench.alone", dtype, device, str(pairs), str(batch)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(output.splitlines()[-1]))


def _main(dtype: Any, device: Any, pairs: str, batch: str) -> None:
    from nograd.bench.setting import build, workload
    from nograd.bench.workload import run_together
    from nograd.llm.pages import PagePool
    from nograd.run.summary import peak_memory_bytes

    setting = build(dtype, device, int(batch))
    start = perf_counter() - _BEGIN
    run_together(setting.scheduler, workload(setting, int(pairs)))
    engine = setting.engine
    page = PagePool.page_bytes(engine.transformer.architecture, engine.pool.keys.dtype)
    result = {
        "start_s": start,
        "peak_memory_bytes": peak_memory_bytes(),
        "cache_bytes": engine.pool.high_water * page,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    _main(*sys.argv[1:])
