"""The untouched model that an export belongs to, as others can get it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nograd.llm.sources import MODELS, Source
from nograd.run.load import RunRecord


@dataclass(frozen=True)
class Base:
    """name: as nograd calls it. commit: the hub's, None for local models. path: what a server or transformers is given:
    a Hugging Face id (with `revision`), a folder, or "./base" within the export. path_for_adapters: the same,
    whatever the working directory.
    origin: the Hugging Face id, of converted models the one they were made from; license: as far as it is known.
    converted: whether the weights were dequantised from a GGUF file."""

    name: str
    commit: str | None
    fingerprint: str
    path: str
    revision: str | None
    path_for_adapters: str
    origin: str | None
    license: str | None
    converted: bool


def base_of(run: RunRecord, source: Source, export: Path | None) -> Base:
    """The base model of a run. export: the folder of the export, if the model is to lie in it."""
    known = MODELS.get(source.name)
    on_hub = source.revision is not None
    own = source.name if on_hub else str(source.folder.resolve())
    return Base(
        name=source.name,
        commit=source.revision,
        fingerprint=run.environment["identity"]["facts"]["fingerprint"],
        path="./base" if export else own,
        revision=None if export else source.revision,
        path_for_adapters=str(export / "base") if export else own,
        origin=known.origin if known else source.name if on_hub else None,
        license=known.license if known else None,
        converted=known is not None or source.name.endswith(".gguf"),
    )
