"""A tree of token sequences: what several prompts begin with is computed once and kept.

One tree per distinct θ of a stage. Prompts are inserted as token sequences; where two part, the tree branches,
so shared prefixes (system text, examples, a first attempt that a retry continues) are found by comparing
tokens, not declared. New nodes of all trees are computed in one forward pass: a child may attend to keys that
its parent writes in the same layer of the same pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nograd.llm.kernels import PAGE
from nograd.llm.pages import PagePool, pages_for


@dataclass(eq=False)
class Node:
    """A run of tokens after its parent's; `pages` hold the whole path from position 0 to `end`.

    ready: its keys and values have been computed. extended: something already continues in its last page.
    copies: [(first, stop, page)]: further pages that want the positions first .. stop of this node.
    """

    parent: Node | None
    start: int
    tokens: tuple[int, ...]
    pages: list[int] = field(default_factory=list)
    children: dict[int, Node] = field(default_factory=dict)
    ready: bool = False
    extended: bool = False
    copies: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)


class PrefixTree:
    """The sequences of one θ. `insert` finds and branches, `place` gives new nodes their pages."""

    def __init__(self, pool: PagePool) -> None:
        self.pool = pool
        self.root = Node(None, 0, (), ready=True)

    def insert(self, tokens: Sequence[int]) -> Node:
        """The node whose path is exactly `tokens`, made by branching where needed."""
        node, done = self.root, 0
        while done < len(tokens):
            child = node.children.get(tokens[done])
            if child is None:
                child = Node(node, done, tuple(tokens[done:]))
                node.children[tokens[done]] = child
                return child
            common = common_length(child.tokens, tokens, done)
            if common < len(child.tokens):
                child = self._split(child, common)
            node, done = child, done + common
        return node

    def _split(self, node: Node, length: int) -> Node:
        """Cut a node after `length` tokens; returns the upper part."""
        assert node.parent is not None
        upper = Node(node.parent, node.start, node.tokens[:length], ready=node.ready, extended=node.ready)
        upper.pages = node.pages[: pages_for(upper.end)]
        self.pool.share(upper.pages)
        node.parent.children[node.tokens[0]] = upper
        upper.children[node.tokens[length]] = node
        node.parent, node.start, node.tokens = upper, upper.end, node.tokens[length:]
        return upper

    def new_nodes(self) -> Iterator[Node]:
        """Nodes that are not ready, each parent before its children."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if not node.ready:
                yield node
            waiting.extend(reversed(node.children.values()))

    def place(self, node: Node) -> None:
        """Give a new node, whose parent has its pages, pages of its own."""
        assert node.parent is not None
        node.pages = self.continuation(node.parent, in_place=not node.parent.extended)
        while len(node.pages) < pages_for(node.end):
            node.pages.append(self.pool.take())

    def continuation(self, node: Node, *, in_place: bool = False) -> list[int]:
        """Pages for a sequence that goes on after `node`: full pages shared, a partly filled one copied, or
        used on where `in_place`. The caller appends further pages and releases all in the end."""
        filled = node.end % PAGE
        if filled == 0 or in_place:
            node.extended = True
            self.pool.share(node.pages)
            return list(node.pages)
        shared = node.pages[:-1]
        self.pool.share(shared)
        page = self.pool.take()
        first = node.end - filled
        ancestor: Node | None = node
        while ancestor is not None and not ancestor.ready:
            if ancestor.end > first:
                ancestor.copies.append((max(ancestor.start, first), ancestor.end, page))
            ancestor = ancestor.parent
        computed = (ancestor.end if ancestor is not None else 0) - first
        if computed > 0:
            self.pool.copy(node.pages[-1], page, computed)
        return [*shared, page]

    def remove(self, node: Node) -> None:
        """Forget a leaf."""
        assert node.parent is not None
        assert not node.children
        del node.parent.children[node.tokens[0]]
        self.pool.release(node.pages)

    def prune(self, node: Node, end: int) -> None:
        """Forget `node` and its ancestors as far as they are leaves that begin at `end` or later."""
        while node.parent is not None and not node.children and node.start >= end:
            if node.parent.children.get(node.tokens[0]) is not node:
                return
            parent = node.parent
            self.remove(node)
            node = parent

    def remove_leaves(self) -> None:
        """Forget what nothing continues; what several sequences share stays."""
        waiting, leaves = [self.root], []
        while waiting:
            node = waiting.pop()
            waiting.extend(node.children.values())
            if node.parent is not None and not node.children:
                leaves.append(node)
        for node in leaves:
            self.remove(node)

    def clear(self) -> None:
        """Forget everything."""
        waiting = list(self.root.children.values())
        while waiting:
            node = waiting.pop()
            waiting.extend(node.children.values())
            self.pool.release(node.pages)
        self.root.children.clear()


def common_length(run: tuple[int, ...], tokens: Sequence[int], offset: int) -> int:
    """How many tokens of `run` agree with tokens[offset:]."""
    limit = min(len(run), len(tokens) - offset)
    for i in range(limit):
        if run[i] != tokens[offset + i]:
            return i
    return limit
