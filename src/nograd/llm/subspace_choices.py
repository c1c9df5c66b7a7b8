"""What a subspace may be chosen to be, one line each. Imports nothing, so that it can be listed at once."""

from __future__ import annotations

from typing import Literal

Kind = Literal["svd", "random", "matched"]
Binding = Literal["round_robin", "shuffled"]
KINDS: dict[str, str] = {
    "svd": "top singular directions with their singular values (the paper's)",
    "random": "random unit directions with s = 1",
    "matched": "random unit directions with the SVD's singular values",
}
BINDINGS: dict[str, str] = {
    "round_robin": "module m owns directions m, m + M, m + 2M, … (the paper's)",
    "shuffled": "as round_robin, with the modules permuted by a seed-keyed shuffle",
}
PARAMETERISATIONS: dict[str, str] = {
    "tied": "one set of coefficients per module, shared by all layers (the paper's)",
    "per_layer": "a set of its own for every layer, dim · layers coefficients per module",
}
