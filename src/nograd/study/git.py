"""Questions to git about a file: when did it say what."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True)
class Commit:
    """A commit. at: the committer's clock, with its time zone."""

    sha: str
    at: datetime

    @property
    def short(self) -> str:
        return self.sha[:10]


def ask(folder: Path, *arguments: str) -> str | None:
    """What git prints, or None if it fails or is not there."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout


def history(path: Path) -> list[tuple[Commit, str]]:
    """The commits that changed a file, oldest first, with its text after each; empty if git does not track
    it. Renames are not followed: under another name it was another plan."""
    log = ask(path.parent, "log", "--reverse", "--format=%H %cI", "--", path.name)
    versions = []
    for line in (log or "").splitlines():
        sha, _, at = line.partition(" ")
        text = ask(path.parent, "show", f"{sha}:./{path.name}")
        if text is not None:
            versions.append((Commit(sha, datetime.fromisoformat(at)), text))
    return versions


def head(folder: Path) -> str | None:
    """The commit that is checked out where a folder lies."""
    answer = ask(folder, "rev-parse", "HEAD")
    return None if answer is None else answer.strip()


def is_ancestor(folder: Path, older: str, newer: str) -> bool:
    """Whether the newer commit contains the older one; False if git does not know both."""
    return ask(folder, "merge-base", "--is-ancestor", older, newer) is not None
