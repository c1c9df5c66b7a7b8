"""Generated questions that the in-house pool and its worked examples lack; the same list on every call."""

from __future__ import annotations

import random
from collections.abc import Iterator, Set
from itertools import cycle

from nograd.tasks import knowledge
from nograd.tasks.in_house_pool import EXAMPLES, QUESTIONS, Question, arithmetic, fact
from nograd.tasks.normalise import normalise
from nograd.tasks.toolbox import toolbox
from nograd.tasks.tools import execute

SEED = 20260101
ARITHMETIC = 40
LOOKUPS = 24

# Text and expression with numbers a and b, and what the numbers may be.
_ARITHMETIC_FORMS: tuple[tuple[str, str, range, range], ...] = (
    ("What is {a} plus {b}?", "{a} + {b}", range(2, 100), range(2, 100)),
    ("What is {a} minus {b}?", "{a} - {b}", range(50, 100), range(2, 50)),
    ("What is {a} times {b}?", "{a} * {b}", range(3, 30), range(3, 12)),
    ("How much is {a} divided by {b}?", "{a} / {b}", range(20, 200, 10), range(2, 9, 2)),
    ("How much is {a} plus {b}?", "{a} + {b}", range(100, 500), range(100, 500)),
    ("Subtract {b} from {a}.", "{a} - {b}", range(60, 300), range(10, 60)),
    ("Multiply {a} by {b}.", "{a} * {b}", range(11, 60), range(3, 10)),
    ("A box holds {a} pens. How many pens are in {b} boxes?", "{a} * {b}", range(5, 30), range(3, 15)),
    ("Ann has {a} stamps and buys {b}. How many has she now?", "{a} + {b}", range(10, 90), range(5, 60)),
    ("What is {a} to the power of {b}?", "{a} ** {b}", range(2, 12), range(2, 5)),
)
_FACT_FORMS = {
    "capital": "What is the capital of {}?",
    "currency": "What is the currency of {}?",
    "language": "Which language is spoken in {}?",
    "symbol": "What is the chemical symbol of {}?",
    "young": "What is a young {} called?",
}


def questions() -> tuple[Question, ...]:
    """ARITHMETIC calculations, then LOOKUPS facts, each about an entity of its own. No question and no answer
    repeats another of these or one of the pool and the examples."""
    rng = random.Random(SEED)
    tools = toolbox()

    def answer(question: Question) -> str:
        return normalise(execute(tools[question.tool], question.arguments).output)

    seen = (*QUESTIONS, *(question for question, _ in EXAMPLES))
    texts = {question.text for question in seen}
    answers = {answer(question) for question in seen}
    entities = {question.arguments.get("entity") for question in seen}
    chosen: list[Question] = []
    for draws, wanted in ((_arithmetic(rng), ARITHMETIC), (_facts(rng, entities), LOOKUPS)):
        for _ in range(wanted):
            question = next(each for each in draws if each.text not in texts and answer(each) not in answers)
            texts.add(question.text)
            answers.add(answer(question))
            chosen.append(question)
    return tuple(chosen)


def _arithmetic(rng: random.Random) -> Iterator[Question]:
    for text, expression, range_a, range_b in cycle(_ARITHMETIC_FORMS):
        a, b = rng.choice(range_a), rng.choice(range_b)
        yield arithmetic(text.format(a=a, b=b), expression.format(a=a, b=b))


def _facts(rng: random.Random, used: Set[object]) -> Iterator[Question]:
    """One question about each unused entity, in random order."""
    facts = knowledge.load().facts
    entities = [entity for entity in facts if entity not in used]
    rng.shuffle(entities)
    for entity in entities:
        attribute = rng.choice([each for each in facts[entity] if each in _FACT_FORMS])
        yield fact(_FACT_FORMS[attribute].format(entity), entity, attribute)
