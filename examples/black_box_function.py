"""Tune a plain function: a small document search of two modules, four coefficients each.

    python examples/black_box_function.py [DIR]

A question goes to a shelf (module "router"), then to a document on it (module "ranker"). Each sums four
features with weights START + theta. An answer is right if the right document comes out on top.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

import nograd
from nograd.search.streams import stream

DOCUMENTS = """
network | slow wifi | if the wifi is slow move closer to the router and choose the 5 GHz band
network | vpn setup | install the client and sign in with the card and the pin to reach the office network
network | guest access | guests of the house get a code for the wifi at the desk and it is valid for a day
printing | paper jam | open the tray and the back door and pull the paper out and close both of them again
printing | toner empty | order a new toner from the shop and put the old one in the box at the desk
printing | scan to mail | put the page on the glass and choose your mail on the screen and press the button
accounts | forgotten password | reset the password with the code that is sent to your phone
accounts | locked account | after five wrong tries the account is locked for an hour or until the desk opens it
accounts | new colleague | the lead asks for the account and the card and the mail a week before the first day
hardware | broken screen | bring the laptop to the desk and take one from the pool until it is repaired
hardware | battery dead | the battery is covered for two years so ask the desk for a new one
hardware | docking station | the docking station needs its own power and the newest firmware to find the screen
"""
QUESTIONS = """
why is the wifi so slow in my room | slow wifi
how can i reach the network of the office from home | vpn setup
can my guests use the wifi of the house | guest access
the paper is stuck in the tray | paper jam
where do i put the old toner | toner empty
how do i get a page on the glass into my mail | scan to mail
i forgot the password and have no phone with me at the desk | forgotten password
too many wrong tries and now it says locked | locked account
there is a new colleague on the first of the month and he needs the mail | new colleague
the screen of the laptop is broken | broken screen
the battery of the laptop is dead after an hour | battery dead
the docking station does not find the screen | docking station
the vpn asks for the pin of the card | vpn setup
is there a code for a day for the wifi | guest access
the firmware of the station is old | docking station
how long is the account locked | locked account
"""

MODULES = ("router", "ranker")
START = np.array([0.3, 0.0, 0.0, 0.3])
"""Of both modules: many words in common, rare or not, in a long document."""
BATCH = 12


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]


SHELVES, TITLES, BODIES = zip(*rows(DOCUMENTS), strict=True)
WORDS = [f"{title} {body}".split() for title, body in zip(TITLES, BODIES, strict=True)]
SHELF = np.unique(SHELVES, return_inverse=True)[1]
"""[documents], the number of each one's shelf."""
ASKED = [question.split() for question, _ in rows(QUESTIONS)]
RIGHT = [TITLES.index(title) for _, title in rows(QUESTIONS)]
FREQUENCY = Counter(word for words in WORDS for word in set(words))


def features(question: list[str], document: int) -> list[float]:
    """Words in common, their rarity, how many of them are in the title, length of the document."""
    common = set(question) & set(WORDS[document])
    rarity = sum(math.log(len(WORDS) / FREQUENCY[word]) for word in sorted(common))
    titled = len(common & set(TITLES[document].split()))
    return [len(common), rarity, titled, len(WORDS[document]) / 10]


FEATURES = np.array([[features(question, document) for document in range(len(WORDS))] for question in ASKED])
"""[questions, documents, 4]"""


def search(theta: NDArray[np.float32], question: int) -> tuple[int, float]:
    """The document found, and the mean log-probability of the right shelf and the right document on it."""
    routed, ranked = (START + theta) @ FEATURES[question].T
    shelf_scores = np.array([routed[shelf == SHELF].max() for shelf in range(SHELF.max() + 1)])
    right = RIGHT[question]
    log_shelf = log_softmax(shelf_scores)[SHELF[right]]
    log_document = log_softmax(np.where(SHELF[right] == SHELF, ranked, -np.inf))[right]
    found = int(np.where(shelf_scores.argmax() == SHELF, ranked, -np.inf).argmax())
    return found, float(log_shelf + log_document) / 2


def score(theta: NDArray[np.float32], generation: int, seed: int) -> dict[str, Any]:
    """The black box: theta on this generation's questions, the same for all candidates."""
    batch = stream(seed, "questions", generation).permutation(len(ASKED))[:BATCH]
    results = [search(theta, question) for question in batch]
    wrong = [(found, RIGHT[q]) for q, (found, _) in zip(batch, results, strict=True) if found != RIGHT[q]]
    misrouted = sum(SHELF[found] != SHELF[right] for found, right in wrong) / max(1, len(wrong))
    success = 1 - len(wrong) / BATCH
    log_probability = float(np.mean([value for _, value in results]))
    return {
        "success": success,
        "fitness": success + 0.5 * log_probability,
        "blame": {"router": misrouted, "ranker": 1 - misrouted} if wrong else None,
        "metrics": {"log_probability": log_probability},
    }


def right_answers(theta: NDArray[np.float32]) -> int:
    """Of all questions."""
    return sum(search(theta, question)[0] == right for question, right in enumerate(RIGHT))


if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else "runs/black-box-function"
    result = nograd.tune_black_box(score, MODULES, 4, out=out, generations=30, settings=["search.arm=soft"])
    untouched, tuned = right_answers(np.zeros_like(result.theta)), right_answers(result.theta)
    print(f"right documents: {untouched} of {len(ASKED)} untouched, {tuned} tuned")
    print(dict(zip(MODULES, (START + result.theta).round(2).tolist(), strict=True)))
