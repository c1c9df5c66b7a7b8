"""`nograd serve`: a run's stages and its whole agent behind an OpenAI-compatible HTTP endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.serve.served import Served


def serve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8000,
    generation: Annotated[
        int | None, typer.Option(help="Serve the coefficients after so many generations (default: the newest).")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    api_key: Annotated[
        str | None,
        typer.Option(envvar="NOGRAD_API_KEY", help="Clients must send it; the variable keeps it out of 'ps'."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of one completion.", min=1)] = 512,
    requests: Annotated[
        int, typer.Option(help="Requests answered or waiting at once; more get status 429.", min=1)
    ] = 64,
    timeout: Annotated[float, typer.Option(help="Seconds until a request is given up.", min=0.001)] = 120.0,
) -> None:
    """Serve the stages of a run, and its whole agent, over HTTP.

    OpenAI's clients work with it: each stage is a model (planner, selector, …), "base" is the untouched model, and
    "agent" answers the last message with the whole tuned agent, which knows no earlier ones. POST /agent takes
    {"question": …, "which": "tuned", "untouched" or "both"} and returns what each stage wrote. Streams come as the
    tokens do, four at a time; the agent's in one piece. Requests that are there together are computed together,
    whatever their stages; on a CPU, an answer does not depend on its company. Decoding is greedy: a temperature
    above 0 is refused, as is every parameter that cannot be obeyed. Needs the extra 'serve'.

    \b
    Examples:
      nograd serve runs/demo
      nograd serve runs/demo --port 8080 --generation 10
      nograd serve runs/demo --host 0.0.0.0 --api-key secret

    Ctrl-C stops it. There is no encryption; without --api-key, whoever reaches the port may ask.
    """
    from nograd.errors import ConfigError

    try:
        from nograd.serve.server import is_loopback, listening, url
        from nograd.serve.server import serve as start
    except ModuleNotFoundError as error:
        raise ConfigError(f"nograd serve needs {error.name}; install it with: pip install 'nograd[serve]'") from error
    from nograd.cli.output import console, note
    from nograd.cli.progress import loading_note
    from nograd.run.load import load_run
    from nograd.serve.limits import Limits
    from nograd.serve.served import check_served, load_served

    _check_key(api_key)
    record = load_run(run)
    check_served(record, generation)
    with listening(host, port) as listener:
        if not is_loopback(listener) and api_key is None:
            note(f"warning: anyone who reaches {host} can use this server: there is no authentication; set --api-key")
        loading_note(record.config.model.spec)
        served = load_served(record, generation, device)
        console().print(_welcome(served, url(host, listener), api_key is not None), soft_wrap=True)
        start(
            served,
            listener,
            limits=Limits(requests, max_tokens, timeout),
            api_key=api_key,
            threads=record.config.execution.threads,
        )


def _check_key(api_key: str | None) -> None:
    from nograd.errors import ConfigError

    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key.strip() == api_key != ""):
        raise ConfigError("the API key must be visible ASCII characters, without spaces around them")


def _welcome(served: Served, url: str, with_key: bool) -> str:
    """Where the server is, and what to paste to try it."""
    from nograd.serve.served import AGENT

    name = next(iter(served.stages))
    header = ' -H "Authorization: Bearer $NOGRAD_API_KEY"' if with_key else ""
    key = 'os.environ["NOGRAD_API_KEY"]' if with_key else '"none"'
    lines = [
        f"serving {', '.join(served.names)} at {url}/v1; Ctrl-C stops it",
        f"  curl {url}/v1/chat/completions{header} -H 'Content-Type: application/json' "
        f"""-d '{{"model": "{name}", "messages": [{{"role": "user", "content": "What is 12 plus 30?"}}]}}'""",
        f'  openai.OpenAI(base_url="{url}/v1", api_key={key}).chat.completions.create('
        f'model="{name}", messages=[{{"role": "user", "content": "What is 12 plus 30?"}}])',
    ]
    if served.agent is not None and AGENT in served.names:
        lines.insert(
            1,
            f"  curl {url}/agent{header} -H 'Content-Type: application/json' "
            """-d '{"question": "What is 12 plus 30?", "which": "both"}'""",
        )
    return "\n".join(lines)
