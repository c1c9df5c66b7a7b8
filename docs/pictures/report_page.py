"""The first screen of a report as docs/pictures/report.png: `python docs/pictures/report_page.py REPORT`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = (1200, 1000)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000")


def screenshot(page: Path, picture: Path) -> None:
    """Of a page on disk, by Chromium."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                "chromium",
                *FLAGS,
                f"--user-data-dir={profile}",
                f"--window-size={SIZE[0]},{SIZE[1]}",
                f"--screenshot={picture}",
                page.resolve().as_uri(),
            ],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    screenshot(Path(sys.argv[1]) / "index.html", Path(__file__).with_name("report.png"))
