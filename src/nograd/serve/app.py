"""The HTTP application: OpenAI's chat completions for each stage, and the whole agent at /agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from nograd.agent.trajectory import Trajectory
from nograd.errors import NogradError, unknown_name
from nograd.run.rebuild import free_task
from nograd.serve.api_error import ApiError
from nograd.serve.body import read_body, while_connected
from nograd.serve.chat_request import LONGEST, ChatRequest, Question, parse_chat, parse_question
from nograd.serve.completion import Piece, Usage, completion, completion_request
from nograd.serve.deadline import in_time
from nograd.serve.engine_thread import EngineThread
from nograd.serve.gate import LOOPBACK, Gate
from nograd.serve.limits import Limits
from nograd.serve.responses import (
    Head,
    completion_object,
    error_response,
    event_stream,
    json_response,
    usage_object,
)
from nograd.serve.served import AGENT, Served, WholeAgent
from nograd.serve.whole_agent import ask_agent
from nograd.tasks.family import Task


class Api:
    """The routes. An answer is computed in the engine thread; a question to the agent takes a thread of its own."""

    def __init__(self, served: Served, engine: EngineThread, limits: Limits) -> None:
        self.served, self.engine, self.limits = served, engine, limits
        self.started = int(time.time())
        self.threads = ThreadPoolExecutor(limits.requests, "agent")

    async def health(self) -> Response:
        """Whether the server is up."""
        return json_response({"status": "ok"})

    async def models(self) -> Response:
        """All model names."""
        return json_response({"object": "list", "data": [self._model(name) for name in self.served.names]})

    async def model(self, name: str) -> Response:
        """One model name."""
        self._check_name(name)
        return json_response(self._model(name))

    async def chat(self, request: Request) -> Response:
        """A chat completion of a stage, of the untouched model, or of the whole agent."""
        deadline = self._deadline()
        async with in_time(deadline):
            chat = parse_chat(await read_body(request, self.limits.body_bytes))
            self._check_name(chat.model)
            pieces = await self._pieces(chat, deadline)
        head = Head.new(chat.model, time.time())
        if chat.stream:
            return event_stream(head, pieces, chat.with_usage)
        whole = await while_connected(request, _all(pieces))
        return json_response(completion_object(head, whole))

    async def agent(self, request: Request) -> Response:
        """The whole agent on a question: its answer, and what each stage wrote."""
        deadline = self._deadline()
        async with in_time(deadline):
            question = parse_question(await read_body(request, self.limits.body_bytes))
        return json_response(await while_connected(request, self._answers(question, deadline)))

    async def _pieces(self, chat: ChatRequest, deadline: float) -> AsyncGenerator[Piece]:
        """The answer in pieces; what is wrong with the request is raised here, not while they are sent."""
        stage = self.served.stages.get(chat.model)
        if stage is None:
            return self._agent_pieces(self._task(_last_question(chat)), deadline)
        wanted = await asyncio.to_thread(completion_request, self.served, stage, chat, self.limits)
        return completion(self.served, self.engine, wanted, chat.stop or [], deadline)

    async def _agent_pieces(self, task: Task, deadline: float) -> AsyncGenerator[Piece]:
        """The tuned agent's answer, in one piece: it is known only when the last stage is done."""
        found, usage = await self._ask(task, ("tuned",), deadline)
        yield Piece(found["tuned"].answer, "stop", usage)

    async def _answers(self, question: Question, deadline: float) -> dict[str, Any]:
        which = ("untouched", "tuned") if question.which == "both" else (question.which,)
        found, usage = await self._ask(self._task(question.question), which, deadline)
        answers = {name: _answer(trajectory) for name, trajectory in found.items()}
        return {"question": question.question, **answers, "usage": usage_object(usage)}

    async def _ask(self, task: Task, which: Sequence[str], deadline: float) -> tuple[dict[str, Trajectory], Usage]:
        return await ask_agent(self._whole(), self.engine, self.threads, task, which, deadline)

    def _task(self, question: str) -> Task:
        """Raises ConfigError where the run's tools know no free questions."""
        return free_task(self._whole().family, question)

    def _whole(self) -> WholeAgent:
        if self.served.agent is None:
            raise ApiError(
                404,
                "this run tuned an agent that lives in a Python program, which the server does not have; "
                f"ask its stages at /v1/chat/completions: {', '.join(self.served.names)}",
                code="no_agent",
            )
        return self.served.agent

    def _check_name(self, name: str) -> None:
        if name in self.served.names:
            return
        if name == AGENT:
            self._whole()
        message = str(unknown_name("model", name[:LONGEST], self.served.names))
        raise ApiError(404, message, code="model_not_found", param="model")

    def _model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self.started, "owned_by": "nograd"}

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self.limits.timeout


def build_app(api: Api, *, api_key: str | None = None, loopback: bool = True) -> FastAPI:
    """The application. loopback: whether it listens on this machine only, and may refuse other host names."""
    app = FastAPI(title="nograd", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_api_route("/health", api.health, methods=["GET"])
    app.add_api_route("/v1/models", api.models, methods=["GET"])
    app.add_api_route("/v1/models/{name:path}", api.model, methods=["GET"])
    app.add_api_route("/v1/chat/completions", api.chat, methods=["POST"])
    app.add_api_route("/agent", api.agent, methods=["POST"])
    app.add_exception_handler(NogradError, _refuse)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(ClientDisconnect, _nobody)
    app.add_exception_handler(Exception, _refuse)
    hosts = LOOPBACK if loopback else None
    app.add_middleware(Gate, requests=api.limits.requests, api_key=api_key, hosts=hosts)
    return app


async def _all(pieces: AsyncGenerator[Piece]) -> list[Piece]:
    return [piece async for piece in pieces]


def _last_question(chat: ChatRequest) -> str:
    """What the agent is asked: the last message, which must be the user's; it knows no earlier ones."""
    for name, value in {"max_tokens": chat.token_limit, "stop": chat.stop}.items():
        if value is not None:
            raise ApiError(
                400,
                f"{name} does not apply to the whole agent, whose stages have limits of their own; leave it out",
                code="unsupported_parameter",
                param=name,
            )
    last = chat.messages[-1]
    if last.role != "user" or not last.content:
        raise ApiError(400, "the agent answers the last message, which must be the user's question", param="messages")
    return last.content


def _answer(trajectory: Trajectory) -> dict[str, Any]:
    steps = [{"stage": step.stage, "text": step.text, "outcome": step.outcome} for step in trajectory.steps]
    return {"answer": trajectory.answer, "attempts": trajectory.attempts, "steps": steps}


async def _refuse(request: Request, error: Exception) -> Response:
    del request
    return error_response(error)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    asked = f"{request.method[:LONGEST]} {request.url.path[:LONGEST]}"
    sentence = f"there is no {asked}; there are GET /health, GET /v1/models, POST /v1/chat/completions and POST /agent"
    return error_response(ApiError(error.status_code, sentence, headers=error.headers))


async def _nobody(request: Request, error: Exception) -> Response:
    """For a client that has gone away; nobody reads it (499 as nginx logs it)."""
    del request, error
    return Response(status_code=499)
