"""Chat templates: a model's own Jinja template, rendered in a sandbox with what transformers offers it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

PROMPT_DATE = datetime(2025, 1, 1)
"""What a template sees as today: prompts must not change between a run and its resumption (DESIGN §3.6)."""


class _GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}` marks assistant text for training; here it renders its body."""

    tags = {"generation"}  # noqa: RUF012  (jinja2 declares it as an instance attribute)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def compile_template(source: str) -> jinja2.Template:
    """The template, compiled; raises jinja2.TemplateError if it is not valid Jinja."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = PROMPT_DATE.strftime
    return environment.from_string(source)


def render(
    template: jinja2.Template,
    messages: Sequence[Mapping[str, str]],
    special_tokens: Mapping[str, str],
    add_generation_prompt: bool,
) -> str:
    """The prompt text for messages with keys role and content.

    special_tokens: what the template may name, e.g. bos_token. Raises jinja2.TemplateError, also for what
    goes wrong inside the template, such as adding text to a number."""
    try:
        return template.render(
            messages=[dict(message) for message in messages],
            tools=None,
            documents=None,
            add_generation_prompt=add_generation_prompt,
            **special_tokens,
        )
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise jinja2.TemplateRuntimeError(f"{type(error).__name__}: {error}") from error


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own filter escapes HTML characters; chat templates expect plain JSON."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
