"""The prefix tree against a dictionary: what a sequence's pages hold is the sequence, whatever else was done.

Instead of keys and values, the pages hold the tokens themselves, written by the same batches that the engine
makes of new nodes.
"""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from test_kernels import architecture

from nograd.llm.batch import Run, lay_out
from nograd.llm.kernels import PAGE
from nograd.llm.pages import PagePool, pages_for
from nograd.llm.prefix import Node, PrefixTree, common_length

CAPACITY = 400
BASES = [tuple((i * i + 3 * b) % 7 for i in range(150)) for b in range(2)]
LENGTHS = st.integers(1, 100) | st.sampled_from([PAGE, 2 * PAGE, 3 * PAGE, PAGE - 1, PAGE + 1])


@st.composite
def sequences(draw: st.DrawFn) -> tuple[int, ...]:
    """A common beginning of any length and some tokens of its own."""
    own = tuple(draw(st.lists(st.integers(0, 6), max_size=40)))
    return draw(st.sampled_from(BASES))[: draw(LENGTHS)] + own


class Trees(RuleBasedStateMachine):
    """One tree; `nodes`: the sequences that were inserted and whose nodes are still there."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(architecture(32, 1, 1, 32, False), CAPACITY, torch.device("cpu"), torch.float32)
        self.tree = PrefixTree(self.pool)
        self.nodes: dict[tuple[int, ...], Node] = {}
        self.tails: list[tuple[tuple[int, ...], list[int]]] = []

    def written(self, pages: list[int], count: int) -> list[int]:
        """The tokens that the pages hold at the first `count` positions."""
        places = [(pages[i // PAGE], i % PAGE) for i in range(count)]
        found = [int(self.pool.values[0, page, 0, slot, 0]) for page, slot in places]
        assert found == [int(self.pool.keys[0, page, 0, 0, slot]) for page, slot in places]
        return found

    def write(self, run: Run) -> None:
        batch = lay_out([run], PAGE)
        for t, token in enumerate(batch.tokens.tolist()):
            for w in range(batch.write_start[t], batch.write_start[t + 1]):
                page, slot = batch.write_page[w], batch.write_slot[w]
                self.pool.values[:, page, :, slot] = token
                self.pool.keys[:, page, :, :, slot] = token

    def compute(self, new: list[Node]) -> None:
        """What the engine does with new nodes: write their tokens to all the places that want them."""
        for node in new:
            self.write(Run(node.tokens, node.start, node.pages, 0, 0, (), copies=tuple(node.copies)))
            node.ready, node.copies = True, []

    @precondition(lambda self: self.pool.available > 100)
    @rule(batch=st.lists(sequences(), min_size=1, max_size=5), more=st.integers(0, 70))
    def insert_and_continue(self, batch: list[tuple[int, ...]], more: int) -> None:
        """A batch of prompts: all are inserted, placed, continued before they are computed, then computed."""
        for tokens in batch:
            self.nodes[tokens] = self.tree.insert(tokens)
        new = list(self.tree.new_nodes())
        assert sum(len(node.tokens) for node in new) <= sum(len(set(batch)) * [150 + 40])
        for node in new:
            self.tree.place(node)
        tails = [(tokens, self.tree.continuation(self.nodes[tokens])) for tokens in batch]
        self.compute(new)
        for number, (tokens, pages) in enumerate(tails):
            self.tails.append(self.grown(tokens, pages, more, number))

    @precondition(lambda self: self.nodes and self.pool.available > 20)
    @rule(data=st.data(), more=st.integers(0, 70))
    def continue_later(self, data: Any, more: int) -> None:
        """A sequence that has been there for long is continued."""
        tokens = data.draw(st.sampled_from(sorted(self.nodes)))
        self.tails.append(self.grown(tokens, self.tree.continuation(self.nodes[tokens]), more, 3))

    def grown(
        self, tokens: tuple[int, ...], pages: list[int], more: int, number: int
    ) -> tuple[tuple[int, ...], list[int]]:
        """Decode: write further tokens, of one's own, behind a continuation."""
        whole = tokens + (100 + number,) * more
        while len(pages) < pages_for(len(whole)):
            pages.append(self.pool.take())
        if more:
            self.write(Run(whole[len(tokens) :], len(tokens), pages, 0, 0, ()))
        return whole, pages

    @precondition(lambda self: self.tails)
    @rule(data=st.data())
    def finish(self, data: Any) -> None:
        _, pages = self.tails.pop(data.draw(st.integers(0, len(self.tails) - 1)))
        self.pool.release(pages)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def prune(self, data: Any) -> None:
        """Forget a scored target, as far as nothing else needs its tokens."""
        tokens = data.draw(st.sampled_from(sorted(self.nodes)))
        end = data.draw(st.integers(0, len(tokens)))
        self.tree.prune(self.nodes[tokens], end)
        kept = self.tree.insert(tokens[:end])
        for new in list(self.tree.new_nodes()):
            self.tree.place(new)
            self.compute([new])
        assert kept.end == end
        self.forget_removed()

    @rule()
    def remove_leaves(self) -> None:
        self.tree.remove_leaves()
        self.forget_removed()

    @rule()
    def clear(self) -> None:
        self.tree.clear()
        self.forget_removed()
        assert self.nodes == {}
        held = {page for _, pages in self.tails for page in pages}
        assert self.pool.available == CAPACITY - len(held), "only live continuations hold pages"

    def forget_removed(self) -> None:
        there = set(self.all_nodes())
        self.nodes = {tokens: node for tokens, node in self.nodes.items() if node in there}

    def all_nodes(self) -> list[Node]:
        found, waiting = [], list(self.tree.root.children.values())
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting.extend(node.children.values())
        return found

    @invariant()
    def every_sequence_is_whole(self) -> None:
        """Nodes and live continuations hold exactly their own tokens."""
        for tokens, node in self.nodes.items():
            assert node.end == len(tokens)
            assert self.tree.insert(tokens) is node
            assert self.written(node.pages, len(tokens)) == list(tokens)
        for tokens, pages in self.tails:
            assert self.written(pages, len(tokens)) == list(tokens)

    @invariant()
    def references_are_those_that_exist(self) -> None:
        expected = [0] * CAPACITY
        for pages in [node.pages for node in self.all_nodes()] + [pages for _, pages in self.tails]:
            for page in pages:
                expected[page] += 1
        assert self.pool._references == expected
        assert self.pool.available == sum(count == 0 for count in expected)

    @invariant()
    def the_tree_is_one(self) -> None:
        for node in self.all_nodes():
            assert node.parent is not None
            assert node.parent.end == node.start
            assert node.tokens
            assert len(node.pages) == pages_for(node.end)
            assert node.parent.children[node.tokens[0]] is node


Trees.TestCase.settings = settings(deadline=None, max_examples=25, stateful_step_count=15)
TestTrees = Trees.TestCase


def test_common_length() -> None:
    assert common_length((1, 2, 3), (9, 1, 2, 4), 1) == 2
    assert common_length((1, 2, 3), (1, 2, 3, 4), 0) == 3
    assert common_length((1, 2, 3), (1, 2), 0) == 2
    assert common_length((), (1,), 0) == 0
