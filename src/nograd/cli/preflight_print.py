"""Findings for a person: a table, what to change, and a reminder when the run begins."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nograd.cli.output import console, note, print_table
from nograd.preflight.finding import Finding
from nograd.preflight.record import newest_preflight
from nograd.run.config import RunConfig
from nograd.run.progress import duration


def print_findings(findings: Iterable[Finding]) -> None:
    """Every finding as a row; then what to change, one line each."""
    rows = [[finding.detector, finding.module or "", finding.verdict, finding.sentence] for finding in findings]
    print_table(("detector", "module", "verdict", "what was found"), rows)
    advised = [finding for finding in findings if finding.advice]
    if advised:
        console().print("\nwhat to change")
    for finding in advised:
        console().print(f"  {_name(finding)}: {finding.advice}", soft_wrap=True)
    console().print()


def recall(config: RunConfig, directory: Path) -> None:
    """On stderr, the newest preflight of such a run, and a warning for every check that failed; nothing if there
    was none."""
    found = newest_preflight(config, directory)
    if found is None:
        return
    path, preflight = found
    note(f"preflight {duration(preflight.age)} ago: {preflight.tally} ({path})")
    for finding in preflight.failed:
        note(f"warning: preflight: {_name(finding)} failed: {finding.sentence}")


def _name(finding: Finding) -> str:
    return finding.detector if finding.module is None else f"{finding.detector} of {finding.module}"
