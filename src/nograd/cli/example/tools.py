"""The tools of a shop's agent: what goods cost, and how many of them are in stock.

Every public function here is a tool. The agent sees its name and its parameters; nograd checks the arguments by
the type hints. What a tool raises is shown to the agent, which may then try once more.
"""

from typing import Literal

_PRICES = {
    "lamp": 24,
    "chair": 45,
    "table": 120,
    "rug": 60,
    "clock": 18,
    "shelf": 75,
    "mirror": 32,
    "vase": 15,
    "pillow": 12,
    "blanket": 28,
}
_STOCK = {
    "Bergen": dict(zip(_PRICES, (14, 36, 5, 8, 21, 9, 11, 40, 52, 17), strict=True)),
    "Lyon": dict(zip(_PRICES, (27, 19, 13, 6, 33, 4, 16, 25, 48, 22), strict=True)),
    "Porto": dict(zip(_PRICES, (10, 42, 7, 12, 29, 15, 3, 38, 64, 31), strict=True)),
}


def price(item: str, quantity: int) -> str:
    """Work out the price of some pieces of an item.

    Args:
        item: one item, such as lamp
        quantity: how many pieces
    """
    if quantity < 1:
        raise ValueError("quantity must be at least 1")
    return f"{_PRICES[_known(item)] * quantity} euros"


def stock(item: str, city: Literal["Bergen", "Lyon", "Porto"]) -> str:
    """Count the pieces of an item in the shop of a city.

    Args:
        item: one item, such as lamp
        city: where the shop is
    """
    return f"{_STOCK[city][_known(item)]} pieces"


def _known(item: str) -> str:
    """The item's name in the lists; a plural is understood."""
    name = item.strip().lower()
    for spelling in (name, name.removesuffix("s"), name.removesuffix("ves") + "f"):
        if spelling in _PRICES:
            return spelling
    raise ValueError(f"unknown item {item!r}; there is {', '.join(_PRICES)}")
