"""Logits of the same tokens from nograd's engine and from transformers, both in float32 on the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from nograd.errors import ExportError
from nograd.export.tuned import Tuned
from nograd.llm.batch import Run, lay_out
from nograd.llm.chat import Message
from nograd.llm.delta import Perturbation
from nograd.llm.loading import load_chat, load_weights
from nograd.llm.pages import PagePool, pages_for
from nograd.llm.transformer import Transformer

Prompts = Sequence[Sequence[int]]
"""Token ids."""

QUESTIONS = (
    "What is 12 plus 30?",
    "Name the capital of Peru, and say in one sentence what the city is known for.",
    '{"tool": "calculator", "arguments": {"expression": "7 * (3 + 4)"}}',
)
CPU = torch.device("cpu")


def chat_prompts(folder: Path, name: str) -> list[list[int]]:
    """A few chats as the model of a folder sees them."""
    chat = load_chat(folder, name)
    return [chat.encode_chat([Message("user", question)]) for question in QUESTIONS]


def engine_logits(tuned: Tuned, modules: Sequence[int], prompts: Prompts) -> list[torch.Tensor]:
    """Per module the engine's logits under its coefficients, for every token: float32 [tokens, vocab]."""
    architecture, weights = load_weights(tuned.source.folder, torch.float32, CPU)
    transformer = Transformer(architecture, weights)
    perturbation = Perturbation(architecture, tuned.subspace, CPU, torch.float32)
    theta = torch.from_numpy(tuned.theta.copy())
    pool = PagePool(architecture, sum(pages_for(len(prompt)) for prompt in prompts), CPU, torch.float32)
    pages = [[pool.take() for _ in range(pages_for(len(prompt)))] for prompt in prompts]

    def of(module: int) -> torch.Tensor:
        runs = [
            Run(prompt, 0, own, theta=module, module=module, wanted=range(len(prompt)))
            for prompt, own in zip(prompts, pages, strict=True)
        ]
        batch = lay_out(runs, transformer.operations.item_tokens)
        return transformer.head(transformer.forward(batch, pool, theta, perturbation))

    return [of(module) for module in modules]


def hub_model(folder: Path) -> Any:
    """transformers' model of a folder, in float32. Raises ExportError if tensors are missing or unexpected."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    load: Any = AutoModelForCausalLM.from_pretrained
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model, found = load(folder, dtype=torch.float32, output_loading_info=True)
    finally:
        logging.enable_progress_bar()  # type: ignore[no-untyped-call]
    check_keys(folder, found["missing_keys"], found["unexpected_keys"])
    return model.eval()


def check_keys(folder: Path, missing: Iterable[str], unexpected: Iterable[str]) -> None:
    """Raise ExportError unless every tensor found its place in the model and the other way round."""
    wrong = [f"missing {key}" for key in sorted(missing)] + [f"unexpected {key}" for key in sorted(unexpected)]
    if wrong:
        raise ExportError(
            f"what was written for {folder.name} does not load without a miss ({', '.join(wrong[:4])}); nothing was "
            "exported: please report this with the model's name"
        )


@torch.inference_mode()
def hub_logits(model: Any, prompts: Prompts) -> torch.Tensor:
    """The same as `engine_logits` gives, of a model in transformers."""
    return torch.cat([model(torch.tensor([list(prompt)]), use_cache=False).logits[0] for prompt in prompts])
