"""Worked examples for the prompts: functions and tasks of our own, none of them from BFCL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nograd.tasks.bfcl.data import Entry


def _parameters(required: tuple[str, ...], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "dict", "properties": properties, "required": list(required)}


CONVERT_TEMPERATURE = {
    "name": "convert_temperature",
    "description": "Convert a temperature to another unit.",
    "parameters": _parameters(
        ("degrees", "to_unit"),
        degrees={"type": "float", "description": "The temperature to convert."},
        to_unit={"type": "string", "description": "The unit to convert to."},
    ),
}
TRANSLATE = {
    "name": "language.translate",
    "description": "Translate a word into another language.",
    "parameters": _parameters(
        ("word", "language"),
        word={"type": "string", "description": "The word to translate."},
        language={"type": "string", "description": "The language to translate into."},
    ),
}
TRAIN_TICKETS = {
    "name": "train_tickets.buy",
    "description": "Buy train tickets between two cities.",
    "parameters": _parameters(
        ("cities", "passengers"),
        cities={
            "type": "array",
            "items": {"type": "string"},
            "description": "The cities of departure and arrival.",
        },
        passengers={"type": "integer", "description": "How many people travel."},
        first_class={"type": "boolean", "description": "Whether to travel first class. Default is false."},
    ),
}
RESERVE_SEAT = {
    "name": "theater.reserve_seat",
    "description": "Reserve seats for a play.",
    "parameters": _parameters(
        ("play", "seats"),
        play={"type": "string", "description": "The title of the play."},
        seats={"type": "integer", "description": "How many seats to reserve."},
        row={"type": "string", "description": "The wanted row. Default is any."},
    ),
}
COUNT_TILES = {
    "name": "count_floor_tiles",
    "description": "Count the tiles that cover a floor.",
    "parameters": _parameters(
        ("length", "width", "tile_size"),
        length={"type": "float", "description": "The length of the floor in metres."},
        width={"type": "float", "description": "The width of the floor in metres."},
        tile_size={"type": "integer", "description": "The edge of a tile in centimetres."},
    ),
}
SORT_WORDS = {
    "name": "text.sort_words",
    "description": "Sort words by the alphabet.",
    "parameters": _parameters(
        ("words",),
        words={"type": "array", "items": {"type": "string"}, "description": "The words to sort."},
        descending={"type": "boolean", "description": "Whether to sort from Z to A. Default is false."},
    ),
}


def _worked(
    number: int, question: str, function: Mapping[str, Any], gold: Mapping[str, list[Any]], plan: str
) -> tuple[Entry, str]:
    return Entry(f"example_{number}", question, function, ({function["name"]: gold},)), plan


EXAMPLES: tuple[tuple[Entry, str], ...] = (
    _worked(
        1,
        "How warm is 30 degrees Celsius in Fahrenheit?",
        CONVERT_TEMPERATURE,
        {"degrees": [30], "to_unit": ["Fahrenheit"]},
        "Convert the temperature to Fahrenheit.",
    ),
    _worked(
        2,
        "I need two train tickets from Lyon to Geneva.",
        TRAIN_TICKETS,
        {"cities": [["Lyon", "Geneva"]], "passengers": [2], "first_class": ["", False]},
        "Buy the train tickets.",
    ),
    _worked(
        3,
        "What is the Spanish word for window?",
        TRANSLATE,
        {"word": ["window"], "language": ["Spanish"]},
        "Translate the word into Spanish.",
    ),
    _worked(
        4,
        "Reserve 3 seats for the play 'Hamlet', please.",
        RESERVE_SEAT,
        {"play": ["Hamlet"], "seats": [3], "row": [""]},
        "Reserve the seats for the play.",
    ),
    _worked(
        5,
        "My floor is 4.5 m long and 3 m wide. How many tiles with an edge of 30 cm do I need?",
        COUNT_TILES,
        {"length": [4.5], "width": [3], "tile_size": [30]},
        "Count the tiles for the floor.",
    ),
    _worked(
        6,
        "Sort the words pear, apple and fig from Z to A.",
        SORT_WORDS,
        {"words": [["pear", "apple", "fig"]], "descending": [True]},
        "Sort the words by the alphabet.",
    ),
)
"""Each entry with the plan of its worked trajectory. Plans name no tool: a small model would copy the name."""
