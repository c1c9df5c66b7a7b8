"""Messages to token ids and back, with the model's own template; no content can forge a control token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import jinja2
from tokenizers import Tokenizer

from nograd.errors import ModelError
from nograd.llm.template import compile_template, render

PRIVATE_USE = range(0xF0000, 0xFFFFE)
"""Unicode's supplementary private use area: characters that stand for control strings while rendering."""


@dataclass(frozen=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class ChatTokenizer:
    """A tokenizer with its chat template. Immutable; padding and truncation are off."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: str | None,
        special_tokens: Mapping[str, str],
        eos_ids: Iterable[int] = (),
        name: str = "the model",
    ) -> None:
        """special_tokens: names a template may use, e.g. {"bos_token": "<s>"}. eos_ids: from the model's
        configuration; the token that ends a turn in the template is added. Raises ModelError without a
        usable template."""
        if not template:
            raise ModelError(
                f"{name} has no chat template; use an instruction-tuned model, or put a chat_template.jinja "
                "into its folder"
            )
        try:
            self._template = compile_template(template)
        except jinja2.TemplateError as error:
            raise ModelError(
                f"the chat template of {name} is not valid Jinja ({error}); repair its chat_template.jinja"
            ) from error
        self._tokenizer = _without_padding(tokenizer)
        self._newline = self._encode("\n")
        self._special_tokens = dict(special_tokens)
        self._name = name
        self._control = _control_ids(tokenizer, template)
        longest_first = sorted(self._control, key=len, reverse=True)
        self._control_pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self.has_system_role = self._takes_system()
        self.eos_ids = frozenset(eos_ids) | self._turn_end_ids()

    @property
    def vocab_size(self) -> int:
        """One more than the largest token id."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    def encode_chat(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> list[int]:
        """Token ids of a chat, as the model was trained to see it.

        A control string inside a content becomes ordinary text tokens. A system message goes to the first
        user message if the template has no system role. Raises ModelError if the template refuses the chat.
        """
        turns = list(messages) if self.has_system_role else _fold_system(messages)
        stand_ins = self._stand_ins(turns)
        hidden = [Message(turn.role, self._hide(turn.content, stand_ins)) for turn in turns]
        try:
            text = self._render(hidden, add_generation_prompt)
        except jinja2.TemplateError as error:
            roles = ", ".join(message.role for message in messages)
            raise ModelError(
                f"the chat template of {self._name} refuses a chat with the roles {roles} ({error}); "
                "arrange the messages as it asks"
            ) from error
        return self._encode_hidden(text, {char: string for string, char in stand_ins.items()})

    def encode_text(self, text: str) -> list[int]:
        """Token ids of plain text as it stands within a chat: nothing added, no control tokens."""
        return [token for piece in self._split_control(text) for token in self._encode_inner(*piece)]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids, special tokens skipped."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def _render(self, messages: Sequence[Message], add_generation_prompt: bool) -> str:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        return render(self._template, turns, self._special_tokens, add_generation_prompt)

    def _stand_ins(self, messages: Sequence[Message]) -> dict[str, str]:
        """Control string → a character that appears in no message, for those that appear in one."""
        found = sorted({hit for turn in messages for hit in self._control_pattern.findall(turn.content)})
        if not found:
            return {}
        everything = {char for message in messages for char in message.content}
        free = (chr(code) for code in PRIVATE_USE if chr(code) not in everything)
        return dict(zip(found, free, strict=False))

    def _hide(self, content: str, stand_ins: Mapping[str, str]) -> str:
        return self._control_pattern.sub(lambda hit: stand_ins[hit[0]], content) if stand_ins else content

    def _encode_hidden(self, text: str, control_of: Mapping[str, str]) -> list[int]:
        """Encode a rendered chat in which single characters stand for control strings of its contents."""
        if not control_of:
            return self._encode(text)
        first, *rest = re.split(f"([{''.join(control_of)}])", text)
        ids = self._encode(first)
        for piece in rest:
            ids += self._encode_inner(control_of.get(piece, piece), piece in control_of)
        return ids

    def _split_control(self, text: str) -> list[tuple[str, bool]]:
        """Pieces of a text, each with whether it is a control string."""
        pieces = re.split(f"({self._control_pattern.pattern})", text)
        return [(piece, index % 2 == 1) for index, piece in enumerate(pieces) if piece]

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def _encode_inner(self, piece: str, is_control: bool) -> list[int]:
        """Encode a piece that other text precedes; a control string as its characters.

        Sentencepiece-style tokenizers put a space before the first word of a text. A newline in front
        keeps it away, and is taken off again unless it merged into the piece."""
        encode = self._encode_as_characters if is_control else self._encode
        ids = encode("\n" + piece)
        prefix = len(self._newline)
        return ids[prefix:] if len(ids) > prefix and ids[:prefix] == self._newline else encode(piece)

    def _encode_as_characters(self, text: str) -> list[int]:
        """Encode a control string as what it is made of; its characters one by one where its model part
        knows it as a whole. (The unknown token may appear: for a character the tokenizer does not have.)"""
        unknown = self._special_tokens.get("unk_token")
        unwanted = {index for string, index in self._control.items() if string != unknown}
        for pieces in ([text], list(text)):
            ids = [token for piece in pieces for token in self._plain_encode(piece)]
            if unwanted.isdisjoint(ids):
                return ids
        raise ModelError(
            f"the tokenizer of {self._name} cannot write {text!r} as plain text; remove it from the messages"
        )

    def _plain_encode(self, text: str) -> list[int]:
        return self._plain_tokenizer.encode(text, add_special_tokens=False).ids

    @cached_property
    def _plain_tokenizer(self) -> Tokenizer:
        """The same tokenizer without added tokens: every string is text to it."""
        description = json.loads(self._tokenizer.to_str())
        return Tokenizer.from_str(json.dumps({**description, "added_tokens": [], "post_processor": None}))

    def _takes_system(self) -> bool:
        """Whether the template shows a system message to the model."""
        try:
            text = self._render([Message("system", "SYSTEM"), Message("user", "USER")], True)
        except jinja2.TemplateError:
            return False
        return "SYSTEM" in text

    def _turn_end_ids(self) -> frozenset[int]:
        """The control token that the template puts behind an assistant's text, if there is one."""
        try:
            text = self._render([Message("user", "USER"), Message("assistant", "ANSWER")], False)
        except jinja2.TemplateError:
            return frozenset()
        end = self._control_pattern.match(text.rpartition("ANSWER")[2].lstrip())
        return frozenset([self._control[end[0]]]) if end else frozenset()


def _without_padding(tokenizer: Tokenizer) -> Tokenizer:
    """A copy that neither pads nor truncates, whatever its file says."""
    copy = Tokenizer.from_str(tokenizer.to_str()) if tokenizer.padding or tokenizer.truncation else tokenizer
    copy.no_padding()
    copy.no_truncation()
    return copy


def _control_ids(tokenizer: Tokenizer, template: str) -> dict[str, int]:
    """Control strings → ids: the special tokens, and the other added tokens that the template writes."""
    added = tokenizer.get_added_tokens_decoder().items()
    return {
        token.content: index
        for index, token in added
        if token.special or (token.content.strip() and token.content in template)
    }


def _fold_system(messages: Sequence[Message]) -> list[Message]:
    """System texts put before the first user message's text, a blank line between."""
    system = [message.content for message in messages if message.role == "system"]
    turns = [message for message in messages if message.role != "system"]
    first = next((index for index, turn in enumerate(turns) if turn.role == "user"), None)
    if not system:
        return turns
    if first is None:
        return [Message("user", "\n\n".join(system)), *turns]
    folded = Message("user", "\n\n".join([*system, turns[first].content]))
    return [*turns[:first], folded, *turns[first + 1 :]]
