"""Two stages over a document store: "query" writes a search query, SQLite finds a passage, "answer" reads it.

Run it with `python examples/retrieve_then_answer.py`; a few minutes. The town is invented, so the model cannot
know the answers: it has to find them.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import tempfile
from pathlib import Path

import nograd
from nograd import Llm, Message, Step, Task, Trajectory
from nograd.tasks.normalise import normalise

STAGES = ("query", "answer")
SETTINGS = ("search.sigma=0.1", "search.clip=0.3")
"""With two stages each coefficient weighs more than with four: the default σ of 0.3 wrecks most candidates."""

# What the archive of Veldmoor says, with a question and its answer.
TOWN = (
    ("The bakery on Mill Lane belongs to Hanna Okoro. It opens at five.", "Who owns the bakery?", "Hanna Okoro"),
    ("The lighthouse was built in 1871. Its lamp is red.", "When was the lighthouse built?", "1871"),
    ("The ferry leaves from Pier Nine. A ticket costs two crowns.", "Where does the ferry leave from?", "Pier Nine"),
    ("Mayor Ivo Lanz was elected in 2019. He keeps bees.", "What does the mayor keep?", "bees"),
    ("The library has 4200 books. It closes on Mondays.", "How many books does the library have?", "4200"),
    ("The town clock was made by Otto Brandt. It runs four minutes late.", "Who made the town clock?", "Otto Brandt"),
    ("The school stands on Garden Street. It has 96 pupils.", "How many pupils does the school have?", "96"),
    ("The river Senna is crossed by a stone bridge. The bridge has five arches.", "How many arches has the bridge?",
     "five"),
    ("The museum shows old maps. Entry is free on Sundays.", "What does the museum show?", "old maps"),
    ("The blacksmith is called Greta Holm. Her forge is by the canal.", "What is the blacksmith called?", "Greta Holm"),
    ("The harvest fair takes place in September. It lasts three days.", "In which month is the harvest fair?",
     "September"),
    ("The windmill grinds rye. It has six sails.", "What does the windmill grind?", "rye"),
    ("Doctor Amal Sey sees patients in the yellow house. She comes from Lund.", "Where does Doctor Sey come from?",
     "Lund"),
    ("The oldest tree is an oak. It is 640 years old.", "How old is the oldest tree?", "640 years"),
    ("The theatre has 150 seats. It burned down in 1932.", "How many seats does the theatre have?", "150"),
    ("The swimming pool is heated by a spring. The water has 31 degrees.", "What heats the swimming pool?",
     "a spring"),
    ("The post office is run by Pavel Ruiz. It sells honey too.", "Who runs the post office?", "Pavel Ruiz"),
    ("The castle belongs to the Thorne family. Its tower leans to the east.", "Which family owns the castle?",
     "Thorne"),
    ("The football club plays in green. Its ground is called The Meadow.",
     "In which colour does the football club play?", "green"),
    ("The brewery makes a dark beer. The beer is called Old Raven.", "What is the beer of the brewery called?",
     "Old Raven"),
    ("The railway station has two platforms. The last train leaves at ten.", "When does the last train leave?", "ten"),
    ("The cheese of the valley is made from goat milk. It ripens for eight weeks.", "What is the cheese made from?",
     "goat milk"),
    ("The fire brigade owns one engine. It is named Berta.", "What is the fire engine named?", "Berta"),
    ("The hotel is called The Blue Heron. It has twelve rooms.", "What is the hotel called?", "The Blue Heron"),
    ("The pharmacy was founded by Nils Adeyemi. It has a wooden sign.", "Who founded the pharmacy?", "Nils Adeyemi"),
    ("The chess champion is Rosa Quint. She is eleven years old.", "Who is the chess champion?", "Rosa Quint"),
    ("The market is held on Thursdays. It has forty stalls.", "On which day is the market held?", "Thursdays"),
    ("The church organ has 1100 pipes. It was a gift of the queen.", "How many pipes has the church organ?", "1100"),
    ("The newspaper is called The Echo. It is printed on pink paper.", "What is the newspaper called?", "The Echo"),
    ("The glass factory makes green bottles. It employs 70 people.", "What does the glass factory make?",
     "green bottles"),
    ("The well on the square is 38 metres deep. Its roof is copper.", "How deep is the well?", "38 metres"),
    ("The weather station measures the wind. It was built by students.", "Who built the weather station?", "students"),
    ("The tailor Mina Falk sews uniforms. Her shop smells of lavender.", "What does the tailor sew?", "uniforms"),
    ("The tunnel is two miles long. Bats sleep in it.", "How long is the tunnel?", "two miles"),
    ("The orchard grows plums. It is guarded by geese.", "What guards the orchard?", "geese"),
    ("The observatory has a telescope from Jena. It is open in winter only.", "Where is the telescope from?", "Jena"),
    ("The choir sings in the old salt store. It has 24 singers.", "Where does the choir sing?", "the old salt store"),
    ("The bank was robbed in 1958. The money was found in a piano.", "When was the bank robbed?", "1958"),
    ("The marathon starts at the gasworks. The record is held by Tove Lind.", "Who holds the marathon record?",
     "Tove Lind"),
    ("The lake freezes in January. Its deepest point is called the Cellar.", "When does the lake freeze?", "January"),
)  # fmt: skip

PASSAGES = {question: passage for passage, question, _ in TOWN}

# The archive of another town, for the worked examples in the prompts: question, query, passage, answer.
EXAMPLES = (
    ("Who paints the boats?", "boats", "The boats are painted by Karl Weiss. He is left-handed.", "Karl Weiss"),
    ("How many steps has the tower?", "tower", "The tower has 212 steps. A raven lives there.", "212"),
    ("What does the gardener grow?", "gardener", "The gardener grows roses. Her hat is made of straw.", "roses"),
    ("When was the school opened?", "school", "The school was opened in 1904. It has a bell.", "1904"),
    ("Where do the monks live?", "monks", "The monks live in the old mill. They brew tea.", "the old mill"),
    ("What is the inn called?", "inn", "The inn is called The Red Fox. It has nine beds.", "The Red Fox"),
)


def build_store(path: Path) -> None:
    """The passages as a full-text index."""
    with sqlite3.connect(path) as store:
        store.execute("CREATE VIRTUAL TABLE IF NOT EXISTS passages USING fts5(text, tokenize='porter')")
        store.executemany("INSERT INTO passages VALUES (?)", [(passage,) for passage, _, _ in TOWN])


def search(path: Path, query: str) -> str:
    """The best passage that has all words of the query, or "" if none has."""
    words = re.findall(r"\w+", query)
    if not words:
        return ""
    match = " ".join(f'"{word}"' for word in words)
    store = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        sql = "SELECT text FROM passages WHERE passages MATCH ? ORDER BY bm25(passages), rowid LIMIT 1"
        found = store.execute(sql, (match,)).fetchone()
    finally:
        store.close()
    return found[0] if found else ""


class Reader:
    """The agent; a class, so that it knows where the store is."""

    def __init__(self, store: Path) -> None:
        self.store = store

    async def __call__(self, task: Task, llm: Llm) -> Trajectory:
        query = (await llm.complete("query", query_prompt(task.question), max_tokens=12)).text.strip()
        passage = await asyncio.to_thread(search, self.store, query)
        right_passage = PASSAGES.get(task.question, passage)
        reply, gold = await asyncio.gather(
            llm.complete("answer", answer_prompt(task.question, passage), max_tokens=12),
            llm.score("answer", answer_prompt(task.question, right_passage), task.answer),
        )
        answer = reply.text.strip()
        return Trajectory(
            answer,
            (Step("query", query, passage or "nothing found"), Step("answer", answer)),
            checks={"query": task.answer in passage},
            log_probabilities={"answer": gold},
        )


def brief(gold: str, answer: str) -> bool:
    """Whether an answer is the gold one, with at most two words around it."""
    right, given = normalise(gold), normalise(answer)
    return f" {right} " in f" {given} " and len(given.split()) <= len(right.split()) + 2


def query_prompt(question: str) -> list[Message]:
    turns = [Message("system", "Write the word to search for.")]
    for asked, query, _, _ in EXAMPLES:
        turns += [Message("user", asked), Message("assistant", query)]
    return [*turns, Message("user", question)]


def answer_prompt(question: str, passage: str) -> list[Message]:
    turns = [Message("system", "Answer from the passage, as briefly as you can.")]
    for asked, _, text, answer in EXAMPLES:
        turns += [Message("user", f"{text}\n{asked}"), Message("assistant", answer)]
    return [*turns, Message("user", f"{passage}\n{question}")]


def main(out: str = "runs/retrieve", generations: int = 10, batch: int = 16, pairs: int = 4) -> None:
    tasks = [{"question": question, "answer": answer} for _, question, answer in TOWN]
    cut = len(tasks) * 7 // 10
    train, held_out = tasks[:cut], tasks[cut:]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder).resolve() / "town.sqlite"
        build_store(store)
        result = nograd.tune(
            Reader(store),
            train,
            STAGES,
            out=out,
            generations=generations,
            batch=batch,
            pairs=pairs,
            check=brief,
            shaping=0.5,
            settings=SETTINGS,
            resume=True,
        )
        for name, chosen in (("tuned on", train), ("held out", held_out)):
            before, after = result.evaluate(chosen)
            print(f"{len(chosen)} tasks {name}: success {before.success:.2f} -> {after.success:.2f}")
        untouched, tuned = result.ask("Who is the mayor?")
        print(f"the mayor: {untouched.answer!r} -> {tuned.answer!r}")


if __name__ == "__main__":
    main()
