"""Where a model comes from: a name, a folder, a GGUF file or a Hugging Face id becomes a folder on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nograd.assets import ASSETS, asset_path
from nograd.errors import ModelError, NogradError
from nograd.llm.checkpoint import read_json, weight_files
from nograd.llm.gguf import converted_folder
from nograd.llm.layouts import check_supported

CONFIG_PATTERNS = ["*.json", "*.jinja", "tokenizer.model", "*.tiktoken", "vocab.txt", "merges.txt"]
WEIGHT_PATTERNS = ["*.safetensors"]
REMEDY = "check the name, the revision and the network, or give a local folder"


@dataclass(frozen=True)
class EmbeddedModel:
    """A row of `nograd models`: a model that comes as a pinned asset."""

    asset: str
    parameters: int
    license: str
    description: str


MODELS: Mapping[str, EmbeddedModel] = {
    "smollm2-135m": EmbeddedModel(
        asset="smollm2-135m",
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
    this order. revision: branch, tag or commit, of a Hugging Face id only. Raises ModelError or AssetError.
    """
    path = Path(spec).expanduser()
    if spec in MODELS or path.exists() or spec.endswith(".gguf"):
        if revision is not None:
            raise ModelError(
                f"{spec!r} has no revisions (got {revision!r}); leave the revision out, or give a "
                "Hugging Face id"
            )
        return _embedded(spec) if spec in MODELS else _local(path)
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
    if (path / "config.json").is_file():
        return Source(path.resolve().name, path)
    ggufs = sorted(path.glob("*.gguf"))
    if len(ggufs) != 1:
        names = ", ".join(file.name for file in ggufs) or "none"
        raise ModelError(
            f"{path} has no config.json and not exactly one .gguf file (found: {names}); give a model "
            "folder, or the path of one .gguf file"
        )
    return Source(ggufs[0].name, converted_folder(ggufs[0]))


def _from_hub(repo: str, revision: str | None) -> Source:
    """The hub's snapshot; what the local cache holds in full is taken without asking the network."""
    cached = _snapshot(repo, revision, CONFIG_PATTERNS + WEIGHT_PATTERNS, local_only=True)
    if cached is None or not _complete(cached):
        configs = _snapshot(repo, revision, CONFIG_PATTERNS)
        assert configs is not None
        check_supported(read_json(configs / "config.json"))
        cached = _snapshot(repo, configs.name, CONFIG_PATTERNS + WEIGHT_PATTERNS)
        assert cached is not None
    return Source(repo, cached, cached.name)


def _complete(folder: Path) -> bool:
    """Whether an earlier download into the hub's cache came to its end."""
    try:
        return bool(weight_files(folder)) and (folder / "config.json").is_file()
    except NogradError:
        return False


def _snapshot(repo: str, revision: str | None, patterns: list[str], local_only: bool = False) -> Path | None:
    """Folder of a repository's commit, None if local_only and not there; the folder's name is the commit."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            repo, revision=revision, allow_patterns=patterns, local_files_only=local_only
        )
    except LocalEntryNotFoundError as error:
        if local_only:
            return None
        raise ModelError(f"{repo!r} is not in the local cache and cannot be downloaded; {REMEDY}") from error
    except HFValidationError as error:
        raise ModelError(
            f"there is no model {repo!r}: it is no embedded model, no folder and no Hugging Face id; "
            f"embedded: {', '.join(MODELS)}"
        ) from error
    except (HfHubHTTPError, OSError) as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"{repo!r} cannot be downloaded ({first_line}); {REMEDY}") from error
    return Path(folder)
