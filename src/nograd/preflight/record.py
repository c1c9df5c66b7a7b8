"""preflight.json: what a preflight found, kept in the directory of the run to come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from nograd.errors import NogradError
from nograd.preflight.finding import Finding, Verdict
from nograd.preflight.propose import Proposed
from nograd.preflight.subject import identity_of, same_subject
from nograd.run import layout
from nograd.run.config import RunConfig, results_bearing, results_hash
from nograd.run.config_source import make_config
from nograd.run.files import disk_errors, write_atomic
from nograd.run.strict_json import dumps, loads

VERDICTS: tuple[Verdict, ...] = ("ok", "warning", "failed")


@dataclass(frozen=True)
class Preflight:
    """at: when it ended, UTC. version: of nograd. seconds: how long it took, the loading included. identity: see
    `subject.identity_of`. proposal: what was tried, and chosen, see `propose`; None where none was
    asked for."""

    at: datetime
    version: str
    seconds: float
    config: RunConfig
    identity: Mapping[str, Any]
    findings: tuple[Finding, ...]
    proposal: Mapping[str, Any] | None = None

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The findings whose verdict is that."""
        return tuple(finding for finding in self.findings if finding.verdict == "failed")

    @property
    def age(self) -> float:
        """Seconds since it ended."""
        return max((datetime.now(UTC) - self.at).total_seconds(), 0.0)

    @property
    def tally(self) -> str:
        """Such as "9 ok, 1 warning, 0 failed"."""
        found = [finding.verdict for finding in self.findings]
        return ", ".join(f"{found.count(verdict)} {verdict}" for verdict in VERDICTS)

    def record(self) -> dict[str, Any]:
        """As a JSON-able record."""
        return {
            "at": self.at.isoformat(timespec="seconds"),
            "version": self.version,
            "seconds": self.seconds,
            "config": results_bearing(self.config),
            "config_hash": results_hash(self.config),
            "identity": dict(self.identity),
            "findings": [asdict(finding) for finding in self.findings],
            "proposal": self.proposal,
        }


def make_preflight(
    config: RunConfig, findings: Sequence[Finding], seconds: float, proposed: Proposed | None = None
) -> Preflight:
    """The record of findings that were made just now."""
    return Preflight(
        at=datetime.now(UTC),
        version=metadata.version("nograd"),
        seconds=seconds,
        config=config,
        identity=identity_of(config),
        findings=tuple(findings),
        proposal=None if proposed is None else _proposal(proposed),
    )


def write_preflight(directory: Path, preflight: Preflight) -> Path:
    """Write or replace preflight.json in one step; a run that goes on in the directory is not disturbed."""
    path = directory / layout.PREFLIGHT
    with disk_errors():
        write_atomic(path, dumps(preflight.record()) + b"\n")
    return path


def read_preflight(path: Path) -> Preflight:
    """Raises OSError, ValueError, KeyError, TypeError or NogradError for what `write_preflight` of this version
    cannot have written."""
    record = loads(path.read_bytes())
    return Preflight(
        at=datetime.fromisoformat(record["at"]),
        version=record["version"],
        seconds=record["seconds"],
        config=make_config(record["config"]),
        identity=record["identity"],
        findings=tuple(Finding(**finding) for finding in record["findings"]),
        proposal=record["proposal"],
    )


def newest_preflight(config: RunConfig, directory: Path) -> tuple[Path, Preflight] | None:
    """The newest preflight that speaks of such a run, in its directory or one beside it; None if there is none.

    It must be of the same configuration, seed, arm and generations aside, of the same weights and tasks, and on
    the same kind of device. A file that cannot be read is passed over."""
    alike = [found for found in _read_all(directory) if same_subject(found[1].config, config)]
    identity = identity_of(config) if alike else {}
    same = [found for found in alike if found[1].identity == identity]
    return max(same, key=lambda found: found[1].at, default=None)


def _proposal(proposed: Proposed) -> dict[str, Any]:
    return {
        "injection": proposed.injection,
        "sigma": proposed.sigma,
        "perturbations": [{**asdict(rung), "state": rung.state} for rung in proposed.rungs],
        "steps": [{"factor": stride.factor, "safe": stride.safe} for stride in proposed.strides],
    }


def _read_all(directory: Path) -> Iterator[tuple[Path, Preflight]]:
    paths = {directory / layout.PREFLIGHT, *directory.parent.glob(f"*/{layout.PREFLIGHT}")}
    for path in sorted(paths):
        try:
            yield path, read_preflight(path)
        except (OSError, ValueError, KeyError, TypeError, NogradError):
            continue
