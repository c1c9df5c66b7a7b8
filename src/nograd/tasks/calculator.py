"""A calculator over a whitelisted syntax tree, in exact rational arithmetic.

Policy: ASCII decimal numbers, + - * / // ** and parentheses; × ÷ − are read as * / -. Nothing else: `^` and
`%` mean different things to different people, so the error says how to write what was meant; no letters, so
no names, booleans, complex numbers, hexadecimal or exponent notation. Exponents are whole numbers, so no
result is complex; 0 ** 0 is 1 and // rounds down, as in Python; division by zero is an error.

Bounds: the text has at most MAX_LENGTH characters, an exponent is at most MAX_EXPONENT either way, and every
literal and intermediate result is a fraction whose numerator and denominator stay below LIMIT. The size of a
power is checked before it is computed; every other operation has bounded operands, hence a bounded result.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from nograd.tasks.tools import ToolError

MAX_LENGTH = 200
MAX_EXPONENT = 64
LIMIT = 10**30
_DECIMALS = 6
_MAX_PARENTHESES = 40

_ALLOWED = "use only numbers, + - * / // ** and ( )"
_SYNONYMS = str.maketrans({"×": "*", "÷": "/", "−": "-"})
_HINTS = {
    "^": "^ is not allowed; write ** for a power",
    "%": "% is not allowed; write 20 / 100 for twenty percent",
    ",": "a comma is not allowed; write 1200, not 1,200",
    "=": "= is not allowed; write only what is to be calculated",
}


class CalculatorError(ToolError):
    """An expression that is not calculated, and what is allowed instead."""


def evaluate(expression: str) -> str:
    """The value of an arithmetic expression as a short decimal. Raises CalculatorError and nothing else."""
    text = _clean(expression)
    return render(_value(_parse(text), text))


def render(value: Fraction) -> str:
    """The value as a plain decimal without trailing zeros: a whole number in full, any other rounded half up
    to six decimals (six significant digits below 1)."""
    if value.denominator == 1:
        return str(value.numerator)
    digits = _DECIMALS + (len(str(abs(int(value)))) if abs(value) >= 1 else 0)
    # Division rounds once, straight from the exact operands.
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).divide(
        Decimal(value.numerator), Decimal(value.denominator)
    )
    text = f"{rounded:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _clean(expression: str) -> str:
    """The expression in ASCII, or an error for what it must not contain."""
    if len(expression) > MAX_LENGTH:
        raise CalculatorError(f"the expression is too long; at most {MAX_LENGTH} characters are allowed")
    text = expression.translate(_SYNONYMS).strip()
    stranger = re.search(r"[^0-9.+\-*/() ]", text)
    if stranger:
        raise CalculatorError(_HINTS.get(stranger[0], f"{stranger[0]!r} is not allowed; {_ALLOWED}"))
    if not text:
        raise CalculatorError(f"the expression is empty; {_ALLOWED}")
    if text.count("(") > _MAX_PARENTHESES:
        raise CalculatorError(f"too many parentheses; at most {_MAX_PARENTHESES} pairs are allowed")
    return text


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise CalculatorError(f"{text[:40]!r} is not arithmetic; {_ALLOWED}") from None


def _value(node: ast.expr, text: str) -> Fraction:
    """Value of a node of the syntax tree of `text`; the length of the text bounds the recursion."""
    match node:
        case ast.Constant(value=int() | float()):
            # The literal's own digits, since the parser's float has lost some.
            return _bounded(Fraction(Decimal(text[node.col_offset : node.end_col_offset])))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, text)
        case ast.UnaryOp(op=ast.UAdd()):
            return _value(node.operand, text)
        case ast.BinOp() if type(node.op) in _OPERATIONS:
            operation = _OPERATIONS[type(node.op)]
            return _bounded(operation(_value(node.left, text), _value(node.right, text)))
    raise CalculatorError(f"{text[:40]!r} is not arithmetic; {_ALLOWED}")


def _bounded(value: Fraction) -> Fraction:
    if abs(value.numerator) >= LIMIT or value.denominator >= LIMIT:
        raise CalculatorError("a number is too large or too long; at most 30 digits are allowed")
    return value


def _divide(a: Fraction, b: Fraction) -> Fraction:
    _refuse_zero(b)
    return a / b


def _floor_divide(a: Fraction, b: Fraction) -> Fraction:
    _refuse_zero(b)
    return Fraction(a // b)


def _refuse_zero(divisor: Fraction) -> None:
    if divisor == 0:
        raise CalculatorError("division by zero is not allowed; divide by another number")


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > MAX_EXPONENT:
        allowed = f"whole numbers from -{MAX_EXPONENT} to {MAX_EXPONENT}"
        raise CalculatorError(f"exponent {render(exponent)} is not allowed; use {allowed}")
    if exponent < 0:
        _refuse_zero(base)
    longest = max(abs(base.numerator), base.denominator)
    # 2 ** (bits - 1) <= longest, so at this size the power is certain to reach LIMIT.
    if (longest.bit_length() - 1) * abs(exponent) >= LIMIT.bit_length():
        raise CalculatorError("the power is too large; at most 30 digits are allowed")
    return Fraction(base ** int(exponent))


_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Pow: _power,
}
