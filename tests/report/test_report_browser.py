"""The page in a real browser: nothing errs, figures render, tables sort, a phone scrolls one way only."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--virtual-time-budget=20000",
    "--dump-dom",
)
LISTENER = """<script>
window.problems = [];
addEventListener("error", (event) => problems.push(String(event.message)));
for (const kind of ["error", "warn"]) console[kind] = (...words) => problems.push(words.join(" "));
</script>"""
"""Goes before everything else in a copy of the page."""

PROBE = """<!doctype html><body><iframe src="copy.html" style="width:%dpx;height:900px"></iframe><script>
const frame = document.querySelector("iframe");
const texts = (table, column) => Array.from(table.tBodies[0].rows, (row) => row.cells[column].textContent);
frame.addEventListener("load", () => {
  const inside = frame.contentDocument, page = inside.documentElement;
  const boxes = Array.from(inside.querySelectorAll("figure svg"), (svg) => svg.getBoundingClientRect());
  const table = inside.querySelector("#table-main-auc"), buttons = table.querySelectorAll("th button");
  const column = Array.from(buttons, (button) => button.textContent).indexOf("Δ");
  const orders = [texts(table, column)];
  for (let click = 0; click < 2; click++) { buttons[column].click(); orders.push(texts(table, column)); }
  buttons[0].click();
  const result = {
    problems: frame.contentWindow.problems, orders, names: texts(table, 0),
    sorted: buttons[0].parentNode.getAttribute("aria-sort"),
    figures: boxes.length, drawn: boxes.filter((box) => box.width > 200 && box.height > 100).length,
    outside: boxes.filter((box) => box.right > page.clientWidth + 1).length,
    marks: inside.querySelectorAll("figure svg path").length,
    width: page.clientWidth, content: page.scrollWidth,
  };
  document.body.dataset.result = JSON.stringify(result);
});
</script></body>"""


def look(report: Path, folder: Path, width: int) -> dict[str, Any]:
    """What a browser window of this width makes of the page."""
    assert CHROMIUM is not None
    page = (report / "index.html").read_text(encoding="utf-8")
    (folder / "copy.html").write_text(page.replace("<head>", "<head>" + LISTENER, 1), encoding="utf-8")
    (folder / "probe.html").write_text(PROBE % width, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    size = "--window-size=1400,1000"
    done = subprocess.run(
        [CHROMIUM, *FLAGS, profile, size, (folder / "probe.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"HOME": str(folder)},
        check=False,
    )
    found = re.search(r'data-result="([^"]*)"', done.stdout)
    assert found, done.stderr[-2000:]
    return dict(json.loads(html.unescape(found[1])))


def numbers(texts: list[str]) -> list[float]:
    return [float(text.replace("−", "-")) for text in texts if text != "–"]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_works(report: Path, tmp_path: Path, width: int) -> None:
    seen = look(report, tmp_path, width)
    assert seen["problems"] == []
    assert seen["figures"] == seen["drawn"] == len(list((report / "figures").glob("*.svg")))
    assert seen["marks"] > 20 * seen["figures"]
    assert seen["outside"] == 0
    assert seen["content"] <= seen["width"] <= width
    before, up, down = seen["orders"]
    assert numbers(up) == sorted(numbers(before))
    assert numbers(down) == sorted(numbers(before), reverse=True)
    assert up[-1] == down[-1] == "–"
    assert (seen["names"], seen["sorted"]) == (["hard", "random", "soft", "uniform"], "ascending")
