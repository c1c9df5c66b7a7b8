"""The flags of `nograd sweep` as a scaling of its plan, and what can be known to be wrong with its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from nograd.cli.checks import check_names
from nograd.errors import ConfigError
from nograd.run.config_source import load_config
from nograd.study.cells import Cell
from nograd.study.scaling import Scaling
from nograd.study.seeds import parse_seeds
from nograd.synthetic import find_regime

OWN_FLAGS = {
    "seed": "--seeds",
    "model.spec": "--model",
    "search.arm": "an arm of the plan",
    "search.generations": "--generations",
    "tasks.batch": "--batch",
}
"""Settings that a sweep takes otherwise than by --set."""


def make_scaling(
    model: str | None,
    seeds: str | None,
    generations: int | None,
    batch: int | None,
    track: str | None,
    settings: Sequence[str],
) -> Scaling:
    """The scaling that the flags ask for. Raises ConfigError."""
    for setting in settings:
        _check_setting(setting)
    overrides = [*settings, *([f"execution.track={track}"] if track is not None else [])]
    try:
        return Scaling(
            model=model,
            seeds=None if seeds is None else parse_seeds(seeds),
            generations=generations,
            batch=batch,
            settings=load_config(None, overrides).model_dump(exclude_unset=True),
        )
    except ValidationError as error:
        detail = error.errors()[0]
        raise ConfigError(
            f"--{detail['loc'][0]} is {detail['input']!r}; it {detail['msg'].replace('Input should', 'must')}"
        ) from error


def check_cells(planned: Iterable[Cell]) -> None:
    """Raise ConfigError, which names the arm, for names that nothing has or a budget that does not fit."""
    for label, cell in {cell.label: cell for cell in planned}.items():
        try:
            check_names(cell.config)
            if cell.config.evaluator == "synthetic":
                find_regime(cell.config.synthetic.regime)
        except ConfigError as error:
            raise ConfigError(f"arm {label!r}: {error}") from error


def _check_setting(setting: str) -> None:
    key, _, value = (part.strip() for part in setting.partition("="))
    if key in OWN_FLAGS:
        raise ConfigError(f"--set {setting}: in a sweep that is {OWN_FLAGS[key]}; use it instead")
    if not value:
        raise ConfigError(f"--set {setting}: give a value, as in search.sigma=0.2")
