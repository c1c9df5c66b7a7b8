"""Errors a person can act on: one sentence that says what is wrong, with the value, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class NogradError(Exception):
    """A mistake in what was asked for, or a failure of the surroundings; the command line prints it
    without a traceback and exits with 2."""


class ConfigError(NogradError):
    """A setting that is unknown, out of range or contradicts another."""


class AssetError(NogradError):
    """A pinned file could not be fetched or does not have the expected hash."""


class ModelError(NogradError):
    """A language model that cannot be loaded, or whose layout is not supported."""


class TaskError(NogradError):
    """A task family, tasks file or tools module that cannot be used."""


class RunError(NogradError):
    """A run directory that is in use, damaged, or made with another configuration."""


class ExportError(NogradError):
    """An export that cannot be written, or that did not pass its verification."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """The error for a name that is not in a registry; suggests the nearest known one."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return ConfigError(f"unknown {kind} {name!r}; {hint}known: {', '.join(names)}")
