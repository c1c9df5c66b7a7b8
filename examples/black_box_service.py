"""Tune a service over HTTP: it takes coefficients as JSON and answers with what they are worth.

    python examples/black_box_service.py [DIR]

The service here stands for yours: it routes tickets by two linear rules (module "topic": which team, module
"urgency": now or later), takes its time, and answers every seventh request with an error 500. nograd asks it
several things at once, asks again after an error, and knows of it nothing but its answers.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nograd
from nograd.search.streams import stream

MODULES = ("topic", "urgency")
DIM = 4
TICKETS = 64
SECONDS = 0.02
VERSION = "2026-11"

RULES = np.array([[1.0, -0.5, 0.3, 0.0], [-0.4, 0.2, 0.0, 1.0]])
"""What people decided about the tickets; the service's secret. [modules, features]"""
START = np.array([[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.5]])
"""The weights in use so far: theta = 0."""


def judge(coefficients: Sequence[Sequence[float]], generation: int, seed: int) -> dict[str, Any]:
    """The service's work: the day's tickets, decided with these coefficients."""
    tickets = stream(seed, "tickets", generation).standard_normal((TICKETS, DIM))
    margins = tickets @ (START + np.array(coefficients)).T * np.sign(tickets @ RULES.T)
    right = margins > 0
    success = right.all(axis=1)
    wrong = (~right[~success]).sum(axis=0)
    return {
        "success": float(success.mean()),
        "fitness": float(-np.log1p(np.exp(-2 * margins)).mean()),
        "blame": dict(zip(MODULES, (wrong / wrong.sum()).tolist(), strict=True)) if wrong.any() else None,
        "metrics": {f"{module}_right": float(right[:, m].mean()) for m, module in enumerate(MODULES)},
    }


class Handler(BaseHTTPRequestHandler):
    """Answers POST requests; every seventh with an error."""

    numbers = itertools.count(1)

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(SECONDS)
        if next(self.numbers) % 7 == 0:
            self.send_error(500, "too much to do")
            return
        body = json.dumps(judge(**question)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@contextmanager
def service() -> Iterator[str]:
    """The address of a running service."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def ask(address: str, theta: NDArray[np.float32], generation: int, seed: int) -> dict[str, Any]:
    """What the service says. An error of any kind is an exception, which is all that nograd wants."""
    question = {"coefficients": theta.tolist(), "generation": generation, "seed": seed}
    request = urllib.request.Request(address, json.dumps(question).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return dict(json.load(answer))


if __name__ == "__main__":
    with service() as address:
        result = nograd.tune_black_box(
            partial(ask, address),
            MODULES,
            DIM,
            out=sys.argv[1] if len(sys.argv) > 1 else "runs/black-box-service",
            generations=20,
            concurrency=8,
            retries=4,
            pause=0.05,
            facts={"service": VERSION},
            settings=["search.arm=soft:floor=1"],
        )
    untouched, tuned = result.summary.zero_theta_success, result.summary.last5_success
    print(f"tickets decided right: {untouched:.2f} untouched, {tuned:.2f} tuned")
    print(dict(zip(MODULES, (START + result.theta).round(2).tolist(), strict=True)))
