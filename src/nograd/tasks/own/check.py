"""A declarative check of a final answer: what the line of a task may ask for instead of an exact match."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from nograd.tasks.normalise import normalise, same_answer

KINDS = ("regex", "number", "one_of", "contains", "function")
# A number that is no part of a longer one; a hyphen after a letter or digit is no sign.
_NUMBER = re.compile(r"(?<![\d.,])(?:(?<!\w)[+-])?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d{1,3})?(?![.,]?\d)")


def _text(value: object) -> object:
    """A number in the file stands for its text."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"must be a regular expression of Python ({error})") from error
    return value


Text = Annotated[str, BeforeValidator(_text), Field(min_length=1, pattern=r"\S")]


class Strict(BaseModel):
    """Part of a line: no unknown fields, no silent conversions, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Check(Strict):
    """Exactly one of KINDS.

    regex: a Python pattern that the whole answer matches, space around it aside. number, tolerance: the only
    number in the answer is that close. one_of: the answer is one of these, by exact match of the normalised
    answer. contains: the normalised answer has this text, as whole words. function: a name in the tools module.
    """

    regex: Annotated[str, AfterValidator(_pattern)] | None = None
    number: float | None = None
    tolerance: Annotated[float, Field(ge=0)] = 0.0
    one_of: Annotated[list[Text], Field(min_length=1)] | None = None
    contains: Text | None = None
    function: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"must have exactly one of {', '.join(KINDS)}")
        if "tolerance" in self.model_fields_set and self.number is None:
            raise ValueError("tolerance goes with number only")
        return self

    def accepts(self, answer: str) -> bool:
        """Whether a final answer passes; a check by function is not decided here."""
        if self.regex is not None:
            return re.fullmatch(self.regex, answer.strip()) is not None
        if self.number is not None:
            return _close(numbers(answer), self.number, self.tolerance)
        if self.one_of is not None:
            return any(same_answer(each, answer) for each in self.one_of)
        assert self.contains is not None, "a function is called elsewhere"
        return re.search(rf"(?<!\w){re.escape(normalise(self.contains))}(?!\w)", normalise(answer)) is not None


def named_check(value: Any) -> Any:
    """A check that is only a text names a function."""
    return {"function": value} if isinstance(value, str) else value


def numbers(answer: str) -> list[Decimal]:
    """The numbers in an answer, in order; commas count as thousands separators only."""
    text = normalise(answer).replace("\N{MINUS SIGN}", "-")
    return [Decimal(found[0].replace(",", "")) for found in _NUMBER.finditer(text)]


def _close(found: Sequence[Decimal], wanted: float, tolerance: float) -> bool:
    return len(found) == 1 and abs(found[0] - Decimal(str(wanted))) <= Decimal(str(tolerance))
