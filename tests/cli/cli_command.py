"""What a command printed, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def last_json(self) -> dict[str, Any]:
        """The last line of stdout, which must be strict JSON."""

        def refuse(constant: str) -> None:
            raise ValueError(constant)

        record = json.loads(self.out.splitlines()[-1], parse_constant=refuse)
        assert isinstance(record, dict)
        return record


Command = Callable[..., Outcome]
