"""`nograd models`: what can be tuned."""

from __future__ import annotations


def models() -> None:
    """List the models, and what else --model takes.

    Besides these names, --model takes any Hugging Face causal language model with .safetensors weights by its
    id (owner/name), a local folder, or a .gguf file. Supported model types: llama (also SmolLM2), mistral,
    qwen2, qwen3, gemma (first generation) and phi3; any other layout is refused with what was found. Remote
    code is never run and pickled weights are never opened.

    \b
    Examples:
      nograd models
      nograd run --model Qwen/Qwen2.5-0.5B-Instruct --set model.revision=main
      nograd run --model ./my-model --dtype float32
    """
    from nograd.cli.output import console, print_table
    from nograd.llm.sources import MODELS

    rows = [
        (name, f"{model.parameters / 1e6:.0f} M", model.license, model.description)
        for name, model in MODELS.items()
    ]
    print_table(("model", "parameters", "license", "description"), rows)
    console().print("\nor a Hugging Face id (owner/name), a model folder, or a .gguf file")
