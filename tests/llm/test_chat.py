"""Chats to token ids: transformers' ids for ordinary content, and no content that forges a control token."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from nograd.errors import ModelError
from nograd.llm.chat import ChatTokenizer, Message
from nograd.llm.loading import load_chat
from nograd.llm.sources import find_model
from nograd.llm.template import PROMPT_DATE, compile_template, render

TEXT = "the quick brown fox jumps over the lazy dog. What is 12 + 30? It is 42.\n\n You are helpful! " * 3
CONTROL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>"]
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}"
    "{% endif %}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m['role'] == 'assistant' else 'user') + '\n' + m['content'] | trim "
    "+ '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
LLAMA2 = (
    "{% for m in messages %}"
    "{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% elif m['role'] == 'system' %}{{ '<<SYS>>\n' + m['content'] + '\n<</SYS>>\n\n' }}"
    "{% else %}{{ ' ' + m['content'] + ' ' + eos_token }}{% endif %}{% endfor %}"
)
THINK = (
    "{%- for m in messages %}\n    {%- if loop.index > 90 %}{% break %}{% endif %}\n"
    "<|im_start|>{{ m.role }}\n"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n{% endif %}"
)
TEMPLATES = {"chatml": CHATML, "gemma": GEMMA, "llama2": LLAMA2, "think": THINK}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


@cache
def tiny_tokenizer(kind: str) -> Tokenizer:
    """A tokenizer trained on a few sentences: "byte" like GPT-2's, "piece" like Llama-2's."""
    special = [AddedToken(text, special=True, normalized=False) for text in CONTROL]
    if kind == "byte":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        special += [AddedToken(f"<0x{byte:02X}>", special=False) for byte in range(256)]
        alphabet = sorted(set(TEXT))
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([TEXT, *TEXT.split()], trainer)
    described = json.loads(tokenizer.to_str())
    described["added_tokens"] = [t for t in described["added_tokens"] if not t["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(described))
    tokenizer.add_tokens([AddedToken("<think>", special=False), AddedToken("</think>", special=False)])
    return tokenizer


@cache
def chat_tokenizer(kind: str, template: str) -> ChatTokenizer:
    return ChatTokenizer(tiny_tokenizer(kind), TEMPLATES[template], SPECIAL, {2}, "tiny")


@cache
def oracle(kind: str, template: str) -> Any:
    tokenizer = Tokenizer.from_str(tiny_tokenizer(kind).to_str())
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, chat_template=TEMPLATES[template], **SPECIAL
    )


def oracle_ids(
    kind: str, template: str, messages: list[Message], generate: bool, **options: Any
) -> list[int]:
    chat = [{"role": message.role, "content": message.content} for message in messages]
    ids: list[int] = oracle(kind, template).apply_chat_template(
        chat, add_generation_prompt=generate, return_dict=False, **options
    )
    return ids


def chats(content: st.SearchStrategy[str], system: bool = True) -> st.SearchStrategy[list[Message]]:
    """Chats of alternating turns that start with the user, behind an optional system message."""

    def build(texts: list[str], with_system: bool) -> list[Message]:
        rest = texts[1:] if with_system else texts
        turns = [Message("user" if i % 2 == 0 else "assistant", text) for i, text in enumerate(rest)]
        return [Message("system", texts[0]), *turns] if with_system else turns

    flag = st.booleans() if system else st.just(False)
    return st.builds(build, st.lists(content, min_size=2, max_size=4), flag)


THOUGHT = ["<think>", "</think>"]
CLEAN = st.text(
    st.one_of(st.sampled_from("abc 12.\n\t'<>|_"), st.characters(exclude_categories=["Cs", "Co"])),
    max_size=30,
).filter(lambda text: not any(token in text for token in CONTROL + THOUGHT))
FRAGMENTS = ["<|im_", "end|>", "<|", " ", "\n", "fox", "é", "12", "<"]
DIRTY = st.lists(st.sampled_from(CONTROL + THOUGHT + FRAGMENTS), max_size=8).map("".join)
PRIVATE = st.sampled_from(["\U000f0000", "\U000f0001", "\ue000"])
EVEN_DIRTIER = st.lists(st.one_of(DIRTY, PRIVATE)).map("".join)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["byte", "piece"])
@pytest.mark.parametrize("template", TEMPLATES)
@settings(deadline=None, max_examples=25)
@given(data=st.data(), generate=st.booleans())
def test_ids_equal_transformers(kind: str, template: str, data: st.DataObject, generate: bool) -> None:
    messages = data.draw(chats(CLEAN, system=template != "gemma"))
    found = chat_tokenizer(kind, template).encode_chat(messages, add_generation_prompt=generate)
    assert found == oracle_ids(kind, template, messages, generate)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["byte", "piece"])
@pytest.mark.parametrize("template", ["chatml", "think"])
@settings(deadline=None, max_examples=50)
@given(messages=chats(DIRTY))
def test_forged_control_tokens_are_text_as_in_transformers(
    kind: str, template: str, messages: list[Message]
) -> None:
    found = chat_tokenizer(kind, template).encode_chat(messages)
    assert found == oracle_ids(kind, template, messages, True, sanitize_control_tokens=True)


@settings(deadline=None, max_examples=100)
@given(messages=chats(EVEN_DIRTIER))
def test_contents_never_add_control_tokens_and_lose_nothing(messages: list[Message]) -> None:
    chat, tokenizer = chat_tokenizer("byte", "chatml"), tiny_tokenizer("byte")
    control = {tokenizer.token_to_id(text) for text in CONTROL}
    ids = chat.encode_chat(messages)
    plain = chat.encode_chat([Message(message.role, "fox") for message in messages])
    assert [token for token in ids if token in control] == [token for token in plain if token in control]
    shown = "".join(f"<|im_start|>{m.role}\n{m.content}<|im_end|>\n" for m in messages)
    assert tokenizer.decode(ids, skip_special_tokens=False) == shown + "<|im_start|>assistant\n"


@settings(deadline=None, max_examples=100)
@given(text=EVEN_DIRTIER)
def test_plain_text_round_trips_without_control_tokens(text: str) -> None:
    chat, tokenizer = chat_tokenizer("byte", "think"), tiny_tokenizer("byte")
    ids = chat.encode_text(text)
    control = {tokenizer.token_to_id(token) for token in CONTROL + THOUGHT}
    assert control.isdisjoint(ids)
    assert chat.decode(ids) == text


@pytest.mark.parametrize("kind", ["byte", "piece"])
def test_text_continues_a_chat(kind: str) -> None:
    """A target's tokens behind a prompt are those of both in one piece: no prefix space, nothing added."""
    chat = chat_tokenizer(kind, "chatml")
    turns = [Message("user", "the fox"), Message("assistant", "the dog")]
    whole = chat.encode_chat(turns, add_generation_prompt=False)
    parts = chat.encode_chat(turns[:1]) + chat.encode_text("the dog")
    assert whole[: len(parts)] == parts
    assert whole[len(parts)] == tiny_tokenizer(kind).token_to_id("<|im_end|>")


def test_system_text_moves_to_the_user_where_there_is_no_system_role() -> None:
    chat = chat_tokenizer("byte", "gemma")
    assert not chat.has_system_role
    folded = chat.encode_chat([Message("system", "You are a fox."), Message("user", "What?")])
    assert folded == chat.encode_chat([Message("user", "You are a fox.\n\nWhat?")])
    assert chat.encode_chat([Message("system", "a fox")]) == chat.encode_chat([Message("user", "a fox")])


@pytest.mark.parametrize(("template", "system"), [("chatml", True), ("llama2", True), ("think", True)])
def test_system_role_is_seen(template: str, system: bool) -> None:
    assert chat_tokenizer("byte", template).has_system_role == system


def test_a_template_that_drops_the_system_text_has_no_system_role() -> None:
    template = "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}"
    chat = ChatTokenizer(tiny_tokenizer("byte"), template, SPECIAL)
    assert not chat.has_system_role
    assert chat.decode(chat.encode_chat([Message("system", "fox"), Message("user", "dog")])) == "fox\n\ndog"


@pytest.mark.parametrize(
    ("template", "turn_end"),
    [("chatml", "<|im_end|>"), ("gemma", "<end_of_turn>"), ("llama2", "</s>"), ("think", "<|im_end|>")],
)
def test_eos_ids_hold_the_configured_ones_and_the_turn_end(template: str, turn_end: str) -> None:
    chat = ChatTokenizer(tiny_tokenizer("byte"), TEMPLATES[template], SPECIAL, {2, 1}, "tiny")
    assert chat.eos_ids == {1, 2, tiny_tokenizer("byte").token_to_id(turn_end)}


def test_a_turn_end_that_is_plain_text_is_no_eos() -> None:
    template = "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
    assert ChatTokenizer(tiny_tokenizer("byte"), template, SPECIAL, {2}).eos_ids == {2}


def test_decode_skips_special_tokens() -> None:
    chat = chat_tokenizer("byte", "chatml")
    assert chat.decode(chat.encode_chat([Message("user", "the fox")])) == "user\nthe fox\nassistant\n"


def test_vocab_size_covers_added_tokens() -> None:
    tokenizer = tiny_tokenizer("byte")
    assert chat_tokenizer("byte", "chatml").vocab_size == tokenizer.token_to_id("</think>") + 1


def test_padding_and_truncation_of_the_tokenizer_file_are_off() -> None:
    tokenizer = Tokenizer.from_str(tiny_tokenizer("byte").to_str())
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=64)
    chat = ChatTokenizer(tokenizer, CHATML, SPECIAL)
    messages = [Message("user", "the quick brown fox")]
    assert chat.encode_chat(messages) == chat_tokenizer("byte", "chatml").encode_chat(messages)
    assert tokenizer.truncation is not None, "the caller's tokenizer is left as it was"


def test_missing_and_broken_templates_are_errors() -> None:
    for template in (None, ""):
        with pytest.raises(ModelError, match=r"tiny has no chat template; .*chat_template\.jinja"):
            ChatTokenizer(tiny_tokenizer("byte"), template, SPECIAL, (), "tiny")
    with pytest.raises(ModelError, match="tiny is not valid Jinja"):
        ChatTokenizer(tiny_tokenizer("byte"), "{% for %}", SPECIAL, (), "tiny")


def test_a_mistake_inside_a_template_is_an_error_with_its_words() -> None:
    chat = ChatTokenizer(tiny_tokenizer("byte"), "{{ messages[0].content + messages | length }}", SPECIAL)
    with pytest.raises(ModelError, match=r"refuses a chat with the roles user .*TypeError"):
        chat.encode_chat([Message("user", "a")])


def test_a_chat_the_template_refuses_is_an_error_with_its_words() -> None:
    with pytest.raises(ModelError, match=r"user, user \(roles must alternate\)"):
        chat_tokenizer("byte", "gemma").encode_chat([Message("user", "a"), Message("user", "b")])


def test_a_tokenizer_that_can_only_write_the_control_token_refuses_it() -> None:
    tokenizer = Tokenizer(models.WordLevel({"<u>": 0, "€": 1}, unk_token="<u>"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens([AddedToken("€", normalized=False)])
    with pytest.raises(ModelError, match="cannot write '€' as plain text"):
        ChatTokenizer(tokenizer, CHATML, SPECIAL, (), "tiny").encode_text("€")


def test_a_control_string_that_the_model_part_knows_is_written_by_characters() -> None:
    """Unigram models find any string of their vocabulary in plain text."""
    pieces = [("<unk>", 0.0), ("<|e|>", -1.0), *((char, -5.0) for char in "<|e>")]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.add_special_tokens([AddedToken("<unk>"), AddedToken("<|e|>")])
    chat = ChatTokenizer(tokenizer, CHATML, {"unk_token": "<unk>"}, (), "tiny")
    assert chat.encode_text("<|e|>") == [2, 3, 4, 3, 5]


def test_a_template_cannot_act_on_a_forged_token() -> None:
    """Templates that cut at a control string cut only what they wrote themselves."""
    template = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}"
    chat = ChatTokenizer(tiny_tokenizer("byte"), template, SPECIAL)
    ids = chat.encode_chat([Message("user", "a</think>b")])
    assert tiny_tokenizer("byte").decode(ids, skip_special_tokens=False) == "a</think>b"


def test_templates_cannot_leave_the_sandbox() -> None:
    template = compile_template("{{ messages.__class__.__mro__ }}{{ ''.__class__ }}")
    with pytest.raises(Exception, match="unsafe"):
        render(template, [{"role": "user", "content": "x"}], {}, True)


def test_templates_have_what_transformers_offers_them() -> None:
    source = (
        "{{ strftime_now('%Y-%m-%d') }}|{{ {'a': '<é>'} | tojson }}|{{ tools is none }}|"
        "{% generation %}{{ messages[0].content }}{% endgeneration %}"
    )
    shown = render(compile_template(source), [{"role": "user", "content": "x"}], {}, True)
    assert shown == f"{PROMPT_DATE:%Y-%m-%d}|{json.dumps({'a': '<é>'}, ensure_ascii=False)}|True|x"


@pytest.mark.real
@pytest.mark.oracle
def test_embedded_tokenizer_equals_transformers() -> None:
    source = find_model("smollm2-135m")
    chat = load_chat(source.folder, source.name)
    reference = AutoTokenizer.from_pretrained(source.folder)
    for system in ("You call tools.", None):
        for text in ("What is 12345 + 67?", "x =  5\n\n  3rd ½ 東京 😀\t", "", "it'll  do: {\"a\": [1, 2]}"):
            messages = [Message("user", text), Message("assistant", text), Message("user", text)]
            messages = [Message("system", system), *messages] if system else messages
            pairs = [{"role": message.role, "content": message.content} for message in messages]
            for generate in (True, False):
                expected = reference.apply_chat_template(
                    pairs, add_generation_prompt=generate, return_dict=False
                )
                assert chat.encode_chat(messages, add_generation_prompt=generate) == expected
    assert chat.eos_ids == {2}
    assert chat.has_system_role


@pytest.mark.real
def test_embedded_tokenizer_keeps_digits_apart() -> None:
    """SmolLM's own rule: a digit is a token of its own, and blanks before it stay together."""
    source = find_model("smollm2-135m")
    chat = load_chat(source.folder, source.name)
    assert [chat.decode([token]) for token in chat.encode_text("a =  15")] == ["a", " =", "  ", "1", "5"]
