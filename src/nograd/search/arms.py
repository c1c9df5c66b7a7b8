"""Arms: an allocation scheme with its options, and the text that names it (`hard_noisy:q=0.5,floor=1`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from nograd.errors import ConfigError, unknown_name
from nograd.plugins import Registry

if TYPE_CHECKING:
    from nograd.search.schemes import Routing, Situation


@dataclass(frozen=True)
class SchemeInfo:
    """A row of `nograd arms`. options: those of this scheme, besides the ones that every scheme takes.
    route: where the free pairs go, for a scheme of another package; nograd's own are in `search.schemes`."""

    description: str
    options: tuple[str, ...] = ()
    route: Callable[[Situation], Routing] | None = None


COMMON_OPTIONS = ("floor", "ipw")
"""Options of every scheme."""

OPTIONS: dict[str, str] = {
    "floor": "pairs that every module gets first, before the scheme routes the others",
    "ipw": "multiply a module's step by (1/M) / its share of the generation's pairs",
    "q": "probability that a generation is routed at random",
    "module": "name of the module; it must be given",
    "catch_up": "multiply the burst step by M, so that the module moves as far as under uniform",
    "spread": "deliver the movement of catch_up as M equal sub-steps, one per generation",
    "clip_scale": "multiply the clip of the burst step",
    "explore": "share of the pairs that is drawn blindly",
}
"""Option → what it does."""

_OWN: dict[str, SchemeInfo] = {
    "uniform": SchemeInfo("equally over the modules; a remainder rotates with the generation"),
    "soft": SchemeInfo("in proportion to softmax(β·credit), β from 1 to 3 over the run"),
    "soft_sigma": SchemeInfo("as soft, and σ of a module grows with its credit, from σ/2 to 2σ"),
    "hard": SchemeInfo("all to the module with the most credit"),
    "hard_noisy": SchemeInfo("as hard, but with probability q to a random module", ("q",)),
    "random": SchemeInfo("all to one random module per generation"),
    "sparse": SchemeInfo("equally over a random half of the modules per generation"),
    "oracle": SchemeInfo("all to the true bottleneck (synthetic environment only)"),
    "lock": SchemeInfo("all to one named module, always", ("module",)),
    "burst": SchemeInfo(
        "all to the named module every M-th generation, else over the others",
        ("module", "catch_up", "clip_scale", "spread"),
    ),
    "bandit": SchemeInfo("drawn in favour of modules whose pairs gained fitness", ("explore",)),
}


def _plugged(name: str, value: object) -> SchemeInfo:
    if not isinstance(value, SchemeInfo) or value.route is None or not set(value.options) <= OPTIONS.keys():
        raise TypeError(
            f"it must be a nograd.search.arms.SchemeInfo with a route and options among {', '.join(OPTIONS)}, "
            f"got {value!r}"
        )
    if set(name) & set(":,= "):
        raise TypeError("the name of a scheme has no colon, comma, equals sign or space")
    return value


SCHEMES = Registry("nograd.arms", _OWN, _plugged)


@dataclass(frozen=True)
class Arm:
    """One way to split the budget: a scheme and its options (see OPTIONS).

    Raises ConfigError for an unknown scheme, an option that does not fit it, or a value out of range.
    """

    scheme: str
    floor: int = 0
    ipw: bool = False
    q: float = 0.5
    module: str | None = None
    catch_up: bool = False
    clip_scale: float = 1.0
    spread: bool = False
    explore: float = 0.2

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise unknown_name("scheme", self.scheme, SCHEMES)
        allowed = allowed_options(self.scheme)
        for name in _OPTIONS:
            if name not in allowed and getattr(self, name) != _DEFAULTS[name]:
                raise _unfit(self.scheme, name)
        _check_values(self)

    @property
    def label(self) -> str:
        """The canonical text: parse_arm(arm.label) == arm."""
        shown = {name: getattr(self, name) for name in allowed_options(self.scheme) if self._shows(name)}
        options = ",".join(f"{name}={_write(value)}" for name, value in shown.items())
        return f"{self.scheme}:{options}" if options else self.scheme

    def _shows(self, option: str) -> bool:
        return option in ("q", "module") or getattr(self, option) != _DEFAULTS[option]


_DEFAULTS = {field.name: field.default for field in fields(Arm)}
_OPTIONS = tuple(name for name in _DEFAULTS if name != "scheme")


def allowed_options(scheme: str) -> tuple[str, ...]:
    """Options of a known scheme, its own first."""
    return SCHEMES[scheme].options + COMMON_OPTIONS


def parse_arm(text: str) -> Arm:
    """The arm that a text such as "uniform" or "lock:module=caller,floor=1" names.

    Raises ConfigError that says which schemes, options or values there are.
    """
    scheme, _, rest = (part.strip() for part in text.partition(":"))
    if scheme not in SCHEMES:
        raise unknown_name("scheme", scheme, SCHEMES)
    options: dict[str, str | int | float | bool] = {}
    for item in rest.split(",") if rest else ():
        name, equals, value = (part.strip() for part in item.partition("="))
        if name not in allowed_options(scheme):
            raise _unfit(scheme, name)
        if not equals or name in options:
            raise ConfigError(f"arm {text!r}: write each option once, as {name}=VALUE")
        options[name] = _read(name, value)
    return Arm(scheme, **options)  # type: ignore[arg-type]


def _unfit(scheme: str, option: str) -> ConfigError:
    allowed = ", ".join(allowed_options(scheme))
    return ConfigError(f"scheme {scheme!r} has no option {option!r}; it takes: {allowed}")


def _read(name: str, text: str) -> str | int | float | bool:
    """An option's value, of the type that its default has."""
    default = _DEFAULTS[name]
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(default, int | float):
            return type(default)(text)
    except (KeyError, ValueError):
        kind = {bool: "true or false", int: "an integer", float: "a number"}[type(default)]
        raise ConfigError(f"option {name!r} is {kind}, got {text!r}") from None
    return text


def _write(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value)


def _check_values(arm: Arm) -> None:
    if isinstance(arm.floor, bool) or not isinstance(arm.floor, int) or arm.floor < 0:
        raise ConfigError(f"floor is a number of pairs, 0 or more, got {arm.floor!r}")
    if not 0 <= arm.q <= 1:
        raise ConfigError(f"q is a probability between 0 and 1, got {arm.q!r}")
    if not 0 < arm.clip_scale < math.inf:
        raise ConfigError(f"clip_scale is a positive factor, got {arm.clip_scale!r}")
    if not 0 < arm.explore <= 1:
        raise ConfigError(f"explore is a share above 0 and up to 1, got {arm.explore!r}")
    if arm.catch_up and arm.spread:
        raise ConfigError("choose catch_up or spread: they deliver the same movement, at once or in sub-steps")
    if "module" in SCHEMES[arm.scheme].options:
        _check_module(arm)


def _check_module(arm: Arm) -> None:
    name = arm.module
    if not name or name != name.strip() or "," in name:
        raise ConfigError(f"scheme {arm.scheme!r} needs module=NAME, a module's name without a comma, got {name!r}")


UNIFORM = Arm("uniform")
