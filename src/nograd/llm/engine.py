"""The engine: many requests, each under its own θ, answered by as few and as full forward passes as possible.

Read with docs/engine.md. A call of `run` inserts all prompts into prefix trees, computes what is new in
passes of a bounded number of tokens, and then decodes all completions together, each row leaving when it ends.
What a request gets back is a function of the request alone, bit for bit, on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray

from nograd.llm.batch import Run, lay_out
from nograd.llm.delta import Perturbation
from nograd.llm.kernels import PAGE
from nograd.llm.pages import PagePool, pages_for
from nograd.llm.prefix import Node, PrefixTree, common_length
from nograd.llm.requests import (
    Completion,
    CompletionRequest,
    EngineCounts,
    Finish,
    Request,
    Result,
    Score,
    ScoreRequest,
)
from nograd.llm.transformer import Transformer

_PASS_TOKENS = 1024
_CACHE_BYTES = {"cpu": 1 << 30, "cuda": 8 << 30}


@dataclass(eq=False)
class _Row:
    """A completion being decoded. length: positions that are in the cache, in `pages`; tokens: decoded so far."""

    index: int
    pages: list[int]
    length: int
    tokens: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Wanted:
    """An output that is wanted at a position, as number `number` of a request's targets, which is `token`."""

    position: int
    request: int
    number: int
    token: int


class Engine:
    """Completions and scores of a frozen model. eos_ids: token ids that end a completion.

    token_budget: tokens of key-value cache; None chooses 1 GiB on a CPU, 8 GiB on a GPU. A batch that does not
    fit is computed in parts, which does not change its results.
    """

    def __init__(
        self,
        transformer: Transformer,
        perturbation: Perturbation | None,
        eos_ids: frozenset[int],
        token_budget: int | None = None,
        pass_tokens: int = _PASS_TOKENS,
    ) -> None:
        self.transformer = transformer
        self.perturbation = perturbation
        self.eos_ids = eos_ids
        self.pass_tokens = pass_tokens
        architecture = transformer.architecture
        words = transformer.operations.words
        kind = transformer.dtype if words or transformer.device.type != "cpu" else torch.float32
        automatic = _CACHE_BYTES[transformer.device.type] // PagePool.page_bytes(architecture, kind)
        pages = automatic if token_budget is None else pages_for(token_budget)
        self.pool = PagePool(
            architecture,
            max(pages, 2 * pages_for(architecture.max_positions)),
            transformer.device,
            kind,
            words=words,
        )
        self.trees: dict[tuple[int, bytes], PrefixTree] = {}
        self.counts = EngineCounts()

    def forget(self) -> None:
        """Drop all cached prefixes and start counting anew (between generations: θ changes)."""
        for tree in self.trees.values():
            tree.clear()
        self.trees.clear()
        self.counts = EngineCounts()

    def coefficients(self, thetas: Sequence[bytes]) -> torch.Tensor | None:
        """float32 bytes, one per distinct θ -> [rows, size] in the model's dtype; None without a perturbation."""
        if self.perturbation is None:
            return None
        rows = np.stack([np.frombuffer(theta, dtype=np.float32) for theta in thetas])
        return torch.from_numpy(rows).to(device=self.transformer.device, dtype=self.transformer.dtype)

    def forward(self, runs: Sequence[Run], theta: torch.Tensor | None) -> torch.Tensor:
        """One pass: the wanted outputs, [outputs, hidden]."""
        batch = lay_out(runs, self.transformer.operations.item_tokens)
        return self.transformer.forward(batch, self.pool, theta, self.perturbation)

    def run(self, requests: Sequence[Request]) -> list[Result]:
        """Results in the order of the requests. If anything is raised, all cached prefixes are dropped."""
        results: dict[int, Result] = {}
        limit = self.transformer.architecture.max_positions
        for i, request in enumerate(requests):
            if (refusal := _refusal(request, limit)) is not None:
                results[i] = refusal
        todo = [i for i in range(len(requests)) if i not in results]
        todo.sort(key=lambda i: (requests[i].module, requests[i].theta, requests[i].path))
        try:
            while todo:
                part = self._fitting(requests, todo)
                todo = todo[len(part) :]
                results.update(_Part(self, {i: requests[i] for i in part}).results())
        except BaseException:
            self.pool.reset()
            self.trees.clear()
            raise
        return [results[i] for i in range(len(requests))]

    def tree(self, request: Request) -> PrefixTree:
        """The prefix tree of this request's stage and θ."""
        return self.trees.setdefault((request.module, request.theta), PrefixTree(self.pool))

    def _fitting(self, requests: Sequence[Request], todo: Sequence[int]) -> Sequence[int]:
        """The first requests of `todo` that the cache holds at once; forgets prefixes to make room."""
        need = _pages_needed([requests[i] for i in todo])
        if sum(need) > self.pool.available:
            for tree in self.trees.values():
                tree.remove_leaves()
        if sum(need) > self.pool.available:
            for tree in self.trees.values():
                tree.clear()
            self.trees.clear()
        total, count = 0, 0
        while count < len(todo) and total + need[count] <= self.pool.available:
            total += need[count]
            count += 1
        return todo[: max(count, 1)]


def _refusal(request: Request, limit: int) -> Result | None:
    """The outcome of a request that needs no computation, or None."""
    if isinstance(request, CompletionRequest):
        return Completion((), "too_long") if len(request.prompt) + request.max_tokens > limit else None
    if len(request.path) > limit:
        return Score(np.empty(0), too_long=True)
    return Score(np.empty(0)) if isinstance(request, ScoreRequest) and not request.target else None


def _pages_needed(requests: Sequence[Request]) -> list[int]:
    """An upper bound of the new pages of each request, given sorted requests that share prefixes."""
    need = []
    before: Request | None = None
    for request in requests:
        related = before is not None and (before.module, before.theta) == (request.module, request.theta)
        shared = common_length(before.path, request.path, 0) if related and before is not None else 0
        more = request.max_tokens if isinstance(request, CompletionRequest) else 0
        need.append(pages_for(len(request.path) - shared) + pages_for(more) + 4)
        before = request
    return need


class _Part:
    """Requests that fit into the cache together, from insertion into the trees to their results."""

    def __init__(self, engine: Engine, requests: dict[int, Request]) -> None:
        self.engine = engine
        self.requests = requests
        keys = dict.fromkeys((request.module, request.theta) for request in requests.values())
        self.theta_row = {key: row for row, key in enumerate(keys)}
        self.theta = engine.coefficients([theta for _, theta in keys])
        self.first_token: dict[int, int] = {}
        self.scores: dict[int, NDArray[np.float64]] = {}

    def results(self) -> dict[int, Result]:
        """Compute everything; results by request index."""
        nodes = self._insert()
        tails = {
            i: self.engine.tree(request).continuation(nodes[i])
            for i, request in self.requests.items()
            if isinstance(request, CompletionRequest)
        }
        self._prefill(self._wanted(nodes))
        found: dict[int, Result] = {i: Score(values) for i, values in self.scores.items()}
        found.update(self._decode(tails))
        for i, request in self.requests.items():
            if isinstance(request, ScoreRequest):
                self.engine.tree(request).prune(nodes[i], len(request.prompt))
        return found

    def _insert(self) -> dict[int, Node]:
        nodes = {}
        for i, request in self.requests.items():
            tree = self.engine.tree(request)
            tree.insert(request.prompt)
            nodes[i] = tree.insert(request.path)
        self.new: list[tuple[tuple[int, bytes], Node]] = []
        for key in self.theta_row:
            tree = self.engine.trees[key]
            for node in list(tree.new_nodes()):
                tree.place(node)
                self.new.append((key, node))
        return nodes

    def _wanted(self, nodes: dict[int, Node]) -> dict[Node, list[_Wanted]]:
        """Which outputs of which nodes are wanted, and for what."""
        wanted: dict[Node, list[_Wanted]] = {}
        for i, request in self.requests.items():
            if isinstance(request, ScoreRequest):
                targets = request.target
                self.scores[i] = np.full(len(targets), np.nan)
            else:
                targets = (0,)
            node: Node | None = nodes[i]
            for number in reversed(range(len(targets))):
                position = len(request.prompt) - 1 + number
                while node is not None and node.start > position:
                    node = node.parent
                assert node is not None
                wanted.setdefault(node, []).append(_Wanted(position, i, number, targets[number]))
        return wanted

    def _prefill(self, wanted: dict[Node, list[_Wanted]]) -> None:
        """Compute all new nodes, and single tokens of nodes that are there but whose output is wanted."""
        pieces: list[tuple[Run, list[_Wanted]]] = []
        for key, node in self.new:
            pieces.extend(self._pieces(key, node, wanted.pop(node, [])))
            node.ready, node.copies = True, []
        for node, asked in wanted.items():
            request = self.requests[asked[0].request]
            for want in asked:
                run = Run(
                    tokens=(node.tokens[want.position - node.start],),
                    start=want.position,
                    pages=node.pages[: pages_for(want.position + 1)],
                    theta=self.theta_row[request.module, request.theta],
                    module=request.module,
                    wanted=(0,),
                    store=False,
                )
                pieces.append((run, [want]))
        pieces.sort(key=lambda piece: piece[0].module)
        for group in _groups(pieces, self.engine.pass_tokens):
            self._prefill_pass(group)

    def _pieces(
        self, key: tuple[int, bytes], node: Node, asked: list[_Wanted]
    ) -> Iterator[tuple[Run, list[_Wanted]]]:
        """A new node as runs of at most one pass's tokens."""
        for first in range(0, len(node.tokens), self.engine.pass_tokens):
            tokens = node.tokens[first : first + self.engine.pass_tokens]
            start = node.start + first
            here = [want for want in asked if start <= want.position < start + len(tokens)]
            yield (
                Run(
                    tokens=tokens,
                    start=start,
                    pages=node.pages[: pages_for(start + len(tokens))],
                    theta=self.theta_row[key],
                    module=key[0],
                    wanted=[want.position - start for want in here],
                    copies=tuple(node.copies),
                ),
                here,
            )

    def _prefill_pass(self, pieces: Sequence[tuple[Run, list[_Wanted]]]) -> None:
        runs = [run for run, _ in pieces]
        asked = [want for _, wants in pieces for want in wants]
        start = perf_counter()
        outputs = self.engine.forward(runs, self.theta)
        targets = np.array([want.token for want in asked], dtype=np.int64)
        best, values = self.engine.transformer.predict(outputs, targets)
        for want, token, value in zip(asked, best, values, strict=True):
            if want.request in self.scores:
                self.scores[want.request][want.number] = value
            else:
                self.first_token[want.request] = int(token)
        self.engine.counts.prefill_seconds += perf_counter() - start
        self.engine.counts.prefill_outputs += len(asked)
        self.engine.counts.prefill_passes += 1
        self.engine.counts.tokens_prefilled += sum(len(run.tokens) for run in runs)

    def _decode(self, tails: dict[int, list[int]]) -> dict[int, Result]:
        """Decode all completions together; a row leaves when it ends."""
        found: dict[int, Result] = {}
        rows = [_Row(i, pages, len(self.requests[i].prompt)) for i, pages in tails.items()]
        latest = [self.first_token[row.index] for row in rows]
        while rows:
            staying = []
            for row, token in zip(rows, latest, strict=True):
                finish = self._append(row, token)
                if finish is None:
                    staying.append(row)
                else:
                    found[row.index] = Completion(tuple(row.tokens), finish)
                    self.engine.pool.release(row.pages)
            rows = staying
            if rows:
                latest = self._decode_pass(rows)
        return found

    def _append(self, row: _Row, token: int) -> Finish | None:
        """Take the next token of a row; how it finished, or None."""
        request = self.requests[row.index]
        assert isinstance(request, CompletionRequest)
        if request.max_tokens > 0 and token in self.engine.eos_ids:
            return "stop"
        if len(row.tokens) < request.max_tokens:
            row.tokens.append(token)
        return "length" if len(row.tokens) >= request.max_tokens else None

    def _decode_pass(self, rows: Sequence[_Row]) -> list[int]:
        """One forward pass over the newest token of each row; the tokens that follow."""
        runs = []
        for row in rows:
            if row.length == len(row.pages) * PAGE:
                row.pages.append(self.engine.pool.take())
            request = self.requests[row.index]
            theta = self.theta_row[request.module, request.theta]
            runs.append(Run(row.tokens[-1:], row.length, row.pages, theta, request.module, (0,)))
            row.length += 1
        start = perf_counter()
        best = self.engine.transformer.best(self.engine.forward(runs, self.theta))
        self.engine.counts.decode_seconds += perf_counter() - start
        self.engine.counts.decode_passes += 1
        self.engine.counts.tokens_decoded += len(rows)
        return [int(token) for token in best]


def _groups(
    pieces: Sequence[tuple[Run, list[_Wanted]]], budget: int
) -> Iterator[list[tuple[Run, list[_Wanted]]]]:
    """Consecutive pieces of at most `budget` tokens together (each piece has at most that many)."""
    group: list[tuple[Run, list[_Wanted]]] = []
    total = 0
    for piece in pieces:
        if total + len(piece[0].tokens) > budget and group:
            yield group
            group, total = [], 0
        group.append(piece)
        total += len(piece[0].tokens)
    if group:
        yield group
