"""What the two stock ways share: transformers' own model, left padding, `generate`, separate scoring passes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nograd.llm.requests import Completion, CompletionRequest, EngineCounts, Request, Result, Score, ScoreRequest


def stock_model(folder: Path, dtype: torch.dtype, device: torch.device) -> Any:
    """transformers' causal LM of a model folder, ready for inference."""
    from transformers import AutoModelForCausalLM, GenerationConfig

    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    plain: Any = GenerationConfig  # greedy decoding without penalties of the model's own
    model.generation_config = plain()
    return model.to(device).eval()


class StockEngine:
    """An engine as such studies are normally written; `rows_at_once` bounds a batch.

    Subclasses say how the rows of a batch get their coefficients."""

    rows_at_once = 16

    def __init__(self, model: Any, eos_ids: frozenset[int], device: torch.device) -> None:
        self.model, self.eos_ids, self.device = model, eos_ids, device
        self.counts = EngineCounts()

    def forget(self) -> None:
        """Start counting anew."""
        self.counts = EngineCounts()

    def active(self, requests: Sequence[Request]) -> AbstractContextManager[dict[str, Any]]:
        """The rows' coefficients in force; yields extra arguments for the model's call."""
        raise NotImplementedError

    @torch.inference_mode()
    def run(self, requests: Sequence[Request]) -> list[Result]:
        """Results in the order of the requests."""
        results: dict[int, Result] = {}
        for kind, compute in ((CompletionRequest, self._complete), (ScoreRequest, self._score)):
            chosen = [i for i, request in enumerate(requests) if isinstance(request, kind)]
            for group in self.groups(requests, chosen):
                for first in range(0, len(group), self.rows_at_once):
                    part = group[first : first + self.rows_at_once]
                    found = compute([requests[i] for i in part])
                    results.update(zip(part, found, strict=True))
        return [results[i] for i in range(len(requests))]

    def groups(self, requests: Sequence[Request], chosen: Sequence[int]) -> list[list[int]]:
        """Which of the chosen requests may share a batch: here, those of one stage and one limit."""
        found: dict[object, list[int]] = {}
        for i in chosen:
            request = requests[i]
            limit = request.max_tokens if isinstance(request, CompletionRequest) else 0
            found.setdefault((request.module, limit), []).append(i)
        return list(found.values())

    def _complete(self, requests: Sequence[Any]) -> list[Result]:
        ids, mask = self._padded([request.prompt for request in requests])
        limit = requests[0].max_tokens
        pad = min(self.eos_ids)
        with self.active(requests) as extra:
            out = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=limit,
                do_sample=False,
                eos_token_id=sorted(self.eos_ids),
                pad_token_id=pad,
                **extra,
            )
        self.counts.tokens_prefilled += int(mask.sum())
        return [self._ended(row[ids.shape[1] :].tolist(), limit) for row in out]

    def _ended(self, tokens: list[int], limit: int) -> Completion:
        end = next((i for i, token in enumerate(tokens) if token in self.eos_ids), None)
        kept = tokens[:end] if end is not None else tokens[:limit]
        self.counts.tokens_decoded += len(kept) + (end is not None) - 1
        return Completion(tuple(kept), "length" if end is None else "stop")

    def _score(self, requests: Sequence[Any]) -> list[Result]:
        ids, mask = self._padded([request.prompt + request.target for request in requests])
        keep = max(len(request.target) for request in requests) + 1
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        with self.active(requests) as extra:
            logits = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                logits_to_keep=keep,
                use_cache=False,
                **extra,
            ).logits
        self.counts.tokens_prefilled += int(mask.sum())
        log_probabilities = logits.float().log_softmax(-1)
        found: list[Result] = []
        for row, request in zip(log_probabilities, requests, strict=True):
            count = len(request.target)
            target = torch.tensor(request.target, device=row.device)
            values = row[keep - 1 - count : keep - 1].gather(1, target[:, None])[:, 0]
            found.append(Score(values.double().cpu().numpy()))
        return found

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Token ids and attention mask, padded on the left."""
        longest = max(len(row) for row in rows)
        ids = np.full((len(rows), longest), min(self.eos_ids), dtype=np.int64)
        mask = np.zeros((len(rows), longest), dtype=np.int64)
        for i, row in enumerate(rows):
            ids[i, longest - len(row) :] = row
            mask[i, longest - len(row) :] = 1
        return torch.from_numpy(ids).to(self.device), torch.from_numpy(mask).to(self.device)
