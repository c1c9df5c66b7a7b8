"""The hand-written questions of the in-house family, and the worked examples of its prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question and the call that answers it."""

    text: str
    tool: str
    arguments: Mapping[str, Any]


def arithmetic(text: str, expression: str) -> Question:
    return Question(text, "calculator", {"expression": expression})


def fact(text: str, entity: str, attribute: str) -> Question:
    return Question(text, "lookup", {"entity": entity, "attribute": attribute})


QUESTIONS = (
    arithmetic("What is 17 plus 25?", "17 + 25"),
    arithmetic("What is 9 plus 6?", "9 + 6"),
    arithmetic("What is 63 minus 28?", "63 - 28"),
    arithmetic("What is 348 plus 276?", "348 + 276"),
    arithmetic("What is 15 times 7?", "15 * 7"),
    arithmetic("How much is 84 divided by 7?", "84 / 7"),
    arithmetic("How much is 500 minus 137?", "500 - 137"),
    arithmetic("How much is 23 times 41?", "23 * 41"),
    arithmetic("Calculate 144 / 6.", "144 / 6"),
    arithmetic("Calculate 2.5 * 6.4.", "2.5 * 6.4"),
    arithmetic("Add 58 and 67.", "58 + 67"),
    arithmetic("Subtract 19 from 90.", "90 - 19"),
    arithmetic("Multiply 36 by 8.", "36 * 8"),
    arithmetic("Divide 91 by 4.", "91 / 4"),
    arithmetic("A box holds 12 eggs. How many eggs are in 9 boxes?", "12 * 9"),
    arithmetic("Tom has 45 coins and gives away 18. How many are left?", "45 - 18"),
    arithmetic("A class has 13 girls and 16 boys. How many children is that?", "13 + 16"),
    arithmetic("Four friends share 52 dollars. How much does each get?", "52 / 4"),
    arithmetic("What is 3 plus 5 times 8?", "3 + 5 * 8"),
    arithmetic("What is 7 to the power of 3?", "7 ** 3"),
    fact("What is the capital of Peru?", "Peru", "capital"),
    fact("What is the capital of Norway?", "Norway", "capital"),
    fact("What is the capital of Egypt?", "Egypt", "capital"),
    fact("What is the capital of Kenya?", "Kenya", "capital"),
    fact("What is the currency of India?", "India", "currency"),
    fact("What is the currency of Poland?", "Poland", "currency"),
    fact("Which language is spoken in Brazil?", "Brazil", "language"),
    fact("What is the chemical symbol of gold?", "gold", "symbol"),
    fact("What is the chemical symbol of iron?", "iron", "symbol"),
    fact("What is the chemical symbol of sodium?", "sodium", "symbol"),
    fact("What is a young dog called?", "dog", "young"),
    fact("What is a young sheep called?", "sheep", "young"),
)

# (question, plan); any prefix of the list shows as many different tools as it can.
EXAMPLES = (
    (arithmetic("What is 14 plus 8?", "14 + 8"), "Use the calculator to add 14 and 8."),
    (fact("What is the capital of Japan?", "Japan", "capital"), "Look up the capital of Japan."),
    (
        Question(
            "How many meters are 3 kilometers?",
            "convert",
            {"value": 3, "from_unit": "kilometer", "to_unit": "meter"},
        ),
        "Convert 3 kilometers to meters.",
    ),
    (
        Question("What day of the week is 2024-03-15?", "weekday", {"date": "2024-03-15"}),
        "Find the weekday of 2024-03-15.",
    ),
    (
        arithmetic("A shelf holds 6 books. How many books are on 11 shelves?", "6 * 11"),
        "Use the calculator to multiply 6 by 11.",
    ),
    (fact("What is the chemical symbol of copper?", "copper", "symbol"), "Look up the symbol of copper."),
    (
        Question(
            "How many inches are 5 feet?",
            "convert",
            {"value": 5, "from_unit": "foot", "to_unit": "inch"},
        ),
        "Convert 5 feet to inches.",
    ),
    (
        Question("Which weekday was 2000-01-01?", "weekday", {"date": "2000-01-01"}),
        "Find the weekday of 2000-01-01.",
    ),
    (arithmetic("How much is 96 divided by 5?", "96 / 5"), "Use the calculator to divide 96 by 5."),
    (fact("What is a young cat called?", "cat", "young"), "Look up the young of a cat."),
)
