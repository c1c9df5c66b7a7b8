"""Live tracking: the scalars of a run for TensorBoard (extra `track`), beside the run's own record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nograd.errors import ConfigError
from nograd.run.generation import GenerationRecord

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = "tensorboard"
"""Below the run directory."""

BY_MODULE = ("allocation", "credit_before", "sigma", "step_raw", "step_applied")


@contextmanager
def tracker(track: str | None, directory: Path, first: int) -> Iterator[Callable[[GenerationRecord], None]]:
    """A function to be told of each finished generation, for as long as the context lasts.

    track: `execution.track`; None tracks nothing. first: the generation that comes next; what an earlier
    session wrote of it and of later ones no longer counts. Raises ConfigError if TensorBoard is missing."""
    if track is None:
        yield lambda _record: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ConfigError(
            'tracking needs TensorBoard; install it with: pip install "nograd[track]"'
        ) from error
    writer = SummaryWriter(str(directory / FOLDER), purge_step=first or None)

    def write(record: GenerationRecord) -> None:
        for name, value in scalars(record).items():
            writer.add_scalar(name, value, record.generation)
        writer.flush()

    try:
        yield write
    finally:
        writer.close()


def scalars(record: GenerationRecord) -> dict[str, float]:
    """What is tracked of a generation: the center's results and metrics, counts, time, and numbers by module
    under NAME/MODULE."""
    own = {name: getattr(record, name) for name in ("success", "reward", "fitness")}
    seconds = {"seconds": record.seconds["generation"], "dropped": float(len(record.dropped))}
    counts = {f"counts/{name}": float(value) for name, value in record.counts.items()}
    by_module = {
        f"{name}/{module}": float(value)
        for name in BY_MODULE
        for module, value in zip(record.modules, getattr(record, name), strict=True)
    }
    return (
        own
        | {f"metrics/{name}": value for name, value in record.metrics.items()}
        | seconds
        | counts
        | by_module
    )
