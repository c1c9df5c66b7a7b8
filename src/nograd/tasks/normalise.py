"""Exact match of normalised answers (DESIGN §4).

Two answers are the same if their normalised texts are equal, or both are finite decimal numbers of equal
value: "42", "42.0", "+42." and "4.2e1" agree. Commas are accepted in numbers only as well-formed thousands
separators ("1,234.5"); "1,5" and "1.234,5" stay text. Units, currency and percent signs are part of the text.
"inf" and "nan" are text: each equals only itself.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

_QUOTES = "\"'`‘’‚‛“”„‟‹›«»"
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,4})?"
)


def normalise(answer: str) -> str:
    """The answer without the differences that do not count: compatibility forms (NFKC), case, surrounding
    space and quotes, full stops at the end. Idempotent."""
    text = _fold(answer)
    while (stripped := _strip_once(text)) != text:
        text = stripped
    return text


def same_answer(a: str, b: str) -> bool:
    """Whether two answers are the same once normalised, numbers compared as decimals."""
    a, b = normalise(a), normalise(b)
    if a == b:
        return True
    number_a, number_b = _number(a), _number(b)
    return number_a is not None and number_a == number_b


def _fold(text: str) -> str:
    """Compatibility caseless form (Unicode 15, §3.13 D146), composed."""
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", once.casefold())


def _strip_once(text: str) -> str:
    return text.strip().strip(_QUOTES).strip().rstrip(".")


def _number(text: str) -> Decimal | None:
    return Decimal(text.replace(",", "")) if _NUMBER.fullmatch(text) else None
