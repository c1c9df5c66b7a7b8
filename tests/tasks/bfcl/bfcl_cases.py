"""Every value that a BFCL gold accepts."""

from typing import Any


def alternatives(options: list[Any]) -> list[Any]:
    """Every value that gold accepts for one parameter; a gold dict stands for one dict per accepted value."""
    found: list[Any] = []
    for option in options:
        if option == "":
            continue
        if isinstance(option, dict):
            found += dicts(option)
        elif isinstance(option, list) and any(isinstance(item, dict) for item in option):
            variants = [dicts(item) for item in option]
            base = [items[0] for items in variants]
            for index, items in enumerate(variants):
                found += [[*base[:index], item, *base[index + 1 :]] for item in items]
        else:
            found.append(option)
    return found


def dicts(option: dict[str, list[Any]]) -> list[dict[str, Any]]:
    base = {key: values[0] for key, values in option.items() if "" not in values}
    accepted = [(key, value) for key, values in option.items() for value in values if value != ""]
    return [base, *({**base, key: value} for key, value in accepted)]
