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

EXAMPLES: tuple[tuple[Entry, str], ...] = (
    (
        Entry(
            "example_1",
            "How warm is 30 degrees Celsius in Fahrenheit?",
            CONVERT_TEMPERATURE,
            ({"convert_temperature": {"degrees": [30], "to_unit": ["Fahrenheit"]}},),
        ),
        "Convert 30 degrees with convert_temperature and report the result.",
    ),
    (
        Entry(
            "example_2",
            "I need two train tickets from Lyon to Geneva.",
            TRAIN_TICKETS,
            (
                {
                    "train_tickets.buy": {
                        "cities": [["Lyon", "Geneva"]],
                        "passengers": [2],
                        "first_class": ["", False],
                    }
                },
            ),
        ),
        "Buy the tickets with train_tickets.buy and report the result.",
    ),
    (
        Entry(
            "example_3",
            "What is the Spanish word for window?",
            TRANSLATE,
            ({"language.translate": {"word": ["window"], "language": ["Spanish"]}},),
        ),
        "Translate the word with language.translate and report the result.",
    ),
)
"""Each entry with the plan of its worked trajectory."""
