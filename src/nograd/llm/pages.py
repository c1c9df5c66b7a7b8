"""Keys and values in pages of 32 positions, shared between sequences by reference.

Position j of a sequence lies in slot j mod 32 of its page j // 32, whatever else is cached: the attention kernel
walks pages in order, so a token's result is a function of its own prefix alone. Sequences with a common prefix
share its full pages; the last, partly filled page is copied for each continuation.
"""

from __future__ import annotations

import torch

from nograd.llm.architecture import Architecture
from nograd.llm.kernels import PAGE


class PagePool:
    """A fixed number of pages for all layers, counted by reference.

    keys: `kind` [layers, pages, kv_heads, head_dim, PAGE]; values: [layers, pages, kv_heads, PAGE, head_dim]. As
    `words` (kind bfloat16) their first axis of a head's two is split in halves that lie side by side: keys
    [layers, pages, kv_heads, head_dim / 2, PAGE, 2], values [layers, pages, kv_heads, PAGE / 2, head_dim, 2].
    Memory is touched, and so taken from the system, only when a page is first written.
    """

    def __init__(
        self, architecture: Architecture, pages: int, device: torch.device, kind: torch.dtype, *, words: bool = False
    ) -> None:
        head = (architecture.layers, pages, architecture.kv_heads)
        dim = architecture.head_dim
        keys, values = ((dim // 2, PAGE, 2), (PAGE // 2, dim, 2)) if words else ((dim, PAGE), (PAGE, dim))
        self.keys = torch.empty((*head, *keys), dtype=kind, device=device)
        self.values = torch.empty((*head, *values), dtype=kind, device=device)
        self.capacity = pages
        self.high_water = 0
        self.reset()

    def reset(self) -> None:
        """All pages are free again."""
        self._references = [0] * self.capacity
        self._free = list(range(self.high_water))[::-1]
        self._untouched = self.high_water

    @staticmethod
    def page_bytes(architecture: Architecture, kind: torch.dtype) -> int:
        """Bytes of one page, keys and values of all layers."""
        return 2 * architecture.layers * architecture.kv_heads * architecture.head_dim * PAGE * kind.itemsize

    @property
    def available(self) -> int:
        """Pages that can still be taken."""
        return len(self._free) + self.capacity - self._untouched

    def take(self) -> int:
        """A page of one's own. The caller has made sure that one is available."""
        if self._free:
            page = self._free.pop()
        else:
            page = self._untouched
            self._untouched += 1
            if page >= self.capacity:
                raise AssertionError("page pool exhausted")
            self.keys[:, page] = 0
            self.values[:, page] = 0
            self.high_water = self._untouched
        self._references[page] = 1
        return page

    def share(self, pages: list[int]) -> None:
        """One more holder of each page."""
        for page in pages:
            self._references[page] += 1

    def release(self, pages: list[int]) -> None:
        """One holder fewer; a page without holders can be taken again."""
        for page in pages:
            self._references[page] -= 1
            if self._references[page] == 0:
                self._free.append(page)

    def copy(self, source: int, target: int, slots: int) -> None:
        """Copy the first `slots` positions of a page, in all layers."""
        self.keys[:, target, :, :, :slots] = self.keys[:, source, :, :, :slots]
        if self.values.dim() == 5:
            self.values[:, target, :, :slots] = self.values[:, source, :, :slots]
            return
        for side in (0, 1):
            lines = min(max(slots - side * PAGE // 2, 0), PAGE // 2)
            self.values[:, target, :, :lines, :, side] = self.values[:, source, :, :lines, :, side]


def pages_for(tokens: int) -> int:
    """Pages that hold this many positions."""
    return -(-tokens // PAGE)
