"""Where a model comes from: a name, a folder, a GGUF file or a Hugging Face id becomes a folder on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nograd.assets import ASSETS, asset_path
from nograd.errors import ConfigError, ModelError, unknown_name
from nograd.llm.checkpoint import in_short, read_json, weight_files
from nograd.llm.gguf import converted_folder
from nograd.llm.layouts import check_supported

CONFIG_PATTERNS = ["*.json", "*.jinja", "tokenizer.model", "*.tiktoken", "vocab.txt", "merges.txt"]
WEIGHT_PATTERNS = ["*.safetensors"]
IGNORED = ["*/*", "consolidated*"]
"""Subfolders and "consolidated" files hold the same weights again in other formats."""


@dataclass(frozen=True)
class EmbeddedModel:
    """A row of `nograd models`: a model that comes as a pinned asset. origin: the Hugging Face id it was made from."""

    asset: str
    origin: str
    parameters: int
    license: str
    description: str


MODELS: Mapping[str, EmbeddedModel] = {
    "smollm2-135m": EmbeddedModel(
        asset="smollm2-135m",
        origin="HuggingFaceTB/SmolLM2-135M-Instruct",
        parameters=134_515_008,
        license="Apache-2.0",
        description="SmolLM2-135M-Instruct, dequantised from a 4-bit GGUF; 30 layers, 8192 positions",
    ),
}


@dataclass(frozen=True)
class Source:
    """A model folder with config.json, safetensors and tokenizer files; revision: the hub's commit."""

    name: str
    folder: Path
    revision: str | None = None


def find_model(spec: str, revision: str | None = None) -> Source:
    """The folder of a model, fetched or converted first if need be.

    spec: a name in MODELS, a local folder, a .gguf file, or a Hugging Face id ("owner/name"); looked for in
    this order. revision: branch, tag or commit, of a Hugging Face id only. Raises ModelError, AssetError,
    or ConfigError for a name that can be none of these.
    """
    path = Path(spec).expanduser()
    if spec in MODELS or path.exists() or spec.endswith(".gguf"):
        if revision is not None:
            raise ModelError(
                f"{spec!r} has no revisions (got {revision!r}); leave the revision out, or give a "
                "Hugging Face id"
            )
        return _embedded(spec) if spec in MODELS else _local(path)
    if "/" not in spec:
        raise ConfigError(
            f"{unknown_name('model', spec, MODELS)}; or give a folder, a .gguf file, or a Hugging Face id "
            "(owner/name)"
        )
    return _from_hub(spec, revision)


def _embedded(name: str) -> Source:
    asset = MODELS[name].asset
    return Source(name, converted_folder(asset_path(asset), ASSETS[asset].sha256))


def _local(path: Path) -> Source:
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelError(f"there is no file {path}; check the path")
        return Source(path.name, converted_folder(path))
    if not path.is_dir():
        raise ModelError(f"{path} is neither a folder nor a .gguf file; give one of these")
    ggufs = sorted(path.glob("*.gguf"))
    if (path / "config.json").is_file() and (any(path.glob("*.safetensors")) or not ggufs):
        return Source(path.resolve().name, path)
    if len(ggufs) != 1:
        names = ", ".join(file.name for file in ggufs) or "none"
        raise ModelError(
            f"{path} holds no model with config.json and safetensors, and not exactly one .gguf file "
            f"(found: {names}); give a model folder, or the path of one .gguf file"
        )
    return Source(ggufs[0].name, converted_folder(ggufs[0]))


def _from_hub(repo: str, revision: str | None) -> Source:
    """The hub's snapshot; what the local cache holds in full is taken without asking the network."""
    folder = _cached_snapshot(repo, revision)
    if folder is None:
        folder = _download(repo, revision, CONFIG_PATTERNS)
        check_supported(read_json(folder / "config.json"))
        folder = _download(repo, folder.name, CONFIG_PATTERNS + WEIGHT_PATTERNS)
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{repo!r} has no .safetensors weights (pickled ones are never opened); choose a model or "
            "revision that has them, or download its .gguf file and give the path"
        )
    return Source(repo, folder, folder.name)


def _cached_snapshot(repo: str, revision: str | None) -> Path | None:
    """The folder of a commit in the hub's local cache if everything is there, else None."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        snapshot = snapshot_download(
            repo,
            revision=revision,
            allow_patterns=CONFIG_PATTERNS + WEIGHT_PATTERNS,
            ignore_patterns=IGNORED,
            local_files_only=True,
        )
        folder = Path(snapshot)
        weight_files(folder)
    except (LocalEntryNotFoundError, ModelError):
        return None
    except HFValidationError as error:
        raise ModelError(
            f"{repo!r} is no folder and no Hugging Face id (owner/name); check the path or the id"
        ) from error
    complete = (folder / "config.json").is_file() and any(folder.glob("tokenizer*"))
    return folder if complete else None


def _download(repo: str, revision: str | None, patterns: list[str]) -> Path:
    """Fetch files of a commit; the folder's name is the commit."""
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(
            repo, revision=revision, allow_patterns=patterns, ignore_patterns=IGNORED
        )
    except Exception as error:  # network libraries below raise their own types
        raise ModelError(
            f"{repo!r} cannot be downloaded at revision {revision or 'main'!r} ({in_short(error)}); "
            "check the id, the revision and the network, or give a local folder"
        ) from error
    return Path(folder)
