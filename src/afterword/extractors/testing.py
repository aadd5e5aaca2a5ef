"""Test doubles for programs that use the extractors: a scripted endpoint, replayed replies, an oracle extractor.

The endpoint is a real HTTP server on loopback, so that a test goes through the whole client, its retries and its
parsing. The oracle needs no endpoint.

    with ScriptedEndpoint([facts_reply(candidate), Reply(status=503), facts_reply()]) as endpoint:
        async with ModelClient(ModelSettings("scripted", base_url=endpoint.base_url)) as client:
            extraction = await ModelExtractor(client).extract(window)
    assert len(endpoint.requests) == 1
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from afterword.extractors.candidates import Answer, Candidate
from afterword.extractors.extractor import Extraction, Rejection, Window
from afterword.extractors.model.modes import PROBE, PROBE_ANSWER

Json = dict[str, Any]

KEY_FIELDS = ("model", "messages", "tools", "tool_choice", "response_format", "temperature", "seed")
"""The fields by which a recorded request is found. All other fields may differ."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the endpoint answers to one request.

    `content` is the model's own text. It is sent as the arguments of the tool if the request forces one, else as the
    message. All other fields are for faults: a `status` other than 200 (with `code` in the error's body), a
    `finish_reason` ("length" if the answer was cut, "content_filter" if it was withheld), a `refusal`, the name of
    another tool, further `calls` of the tool (the arguments of each), no `choices`, no `usage`, a `body` that is not a
    chat completion, or an endpoint that `hangs` and gives no answer until the client gives up.
    """

    content: str = ""
    status: int = 200
    code: str | None = None
    finish_reason: str = "stop"
    refusal: str | None = None
    tool_name: str | None = None
    calls: Sequence[str] = ()
    choices: bool = True
    usage: bool = True
    body: str | bytes | None = None
    hangs: bool = False
    headers: Mapping[str, str] = field(default_factory=lambda: {"retry-after-ms": "1"})


Responder = Callable[[Json], Reply]


def facts_reply(*candidates: Candidate) -> Reply:
    """Return the reply of a model that found these candidates."""
    return Reply(Answer(facts=list(candidates)).model_dump_json())


def schema_echoed(request: Json) -> Reply:
    """Return a reply that repeats the schema of the request instead of an answer, as small models do."""
    return Reply(json.dumps(schema_of(request)))


def schema_of(request: Json) -> Any:
    """Return the JSON schema that the answer to a request must fit, or None if the request has no field with one."""
    for tool in request.get("tools") or ():
        if tool["function"]["name"] == forced_tool(request):
            return tool["function"].get("parameters")
    return ((request.get("response_format") or {}).get("json_schema") or {}).get("schema")


def forced_tool(request: Json) -> str | None:
    """Return the name of the tool that the model is forced to call, or None."""
    choice = request.get("tool_choice")
    return str(choice["function"]["name"]) if isinstance(choice, dict) else None


def shown_pairs(question: str) -> dict[int, tuple[str, str]]:
    """Return the pairs (earlier statement, later statement) in the text of a request to the judge, by pair number."""
    statements = dict(re.findall(r"^(S\d+) (.*)$", question, re.MULTILINE))
    return {
        int(number): (statements[earlier], statements[later])
        for later, listed in re.findall(r"^LATER (S\d+); earlier: (.*)$", question, re.MULTILINE)
        for number, earlier in re.findall(r"(\d+)\. (S\d+)", listed)
    }


def request_key(request: Json) -> str:
    """Return the key under which the reply to a request is recorded: the SHA-256 of the fields that identify it."""
    identity = {name: request[name] for name in KEY_FIELDS if name in request}
    return hashlib.sha256(json.dumps(identity, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def replayed(*cassettes: Path) -> Responder:
    """Return a responder that answers with recorded replies. A cassette has JSON Lines with `key` and `reply`.

    A request without a recorded reply gets HTTP 404, so that it cannot go unnoticed.
    """
    replies: dict[str, str] = {entry["key"]: entry["reply"] for path in cassettes for entry in _lines(path)}

    def respond(request: Json) -> Reply:
        key = request_key(request)
        return Reply(replies[key]) if key in replies else Reply(status=404, code="no_recorded_reply")

    return respond


def recorded_model(cassette: Path) -> str | None:
    """Return the name of the model whose replies a cassette holds, or None if its lines do not name one.

    The name is part of the key of a request. Raises ValueError if the cassette holds replies of several models.
    """
    names = {entry["model"] for entry in _lines(cassette) if entry.get("model")}
    if len(names) > 1:
        raise ValueError(f"it holds the replies of several models: {', '.join(sorted(names))}")
    return next(iter(names), None)


def _lines(cassette: Path) -> list[Json]:
    return [json.loads(line) for line in cassette.read_text(encoding="utf-8").splitlines() if line.strip()]


def is_probe(request: Json) -> bool:
    """Whether a request is the tiny question by which a client tries a mode."""
    return any(message["content"] == PROBE[1]["content"] for message in request.get("messages", ()))


class ScriptedEndpoint:
    """An OpenAI-compatible chat endpoint on loopback that gives prepared answers and records every request.

    `script` is one responder for all requests, or replies and responders that are used one after the other. After the
    last one the endpoint answers HTTP 404. Use it in `with` or `async with`, and pass `base_url` to `ModelSettings`.
    `requests` holds the bodies in the order of arrival, `authorizations` the headers of that name.

    A client in mode "auto" tries each mode with a tiny question. The endpoint answers it without the script and does
    not record it. With `answers_probes=False` the script must answer it.
    """

    def __init__(self, script: Responder | Iterable[Reply | Responder] = (), *, answers_probes: bool = True) -> None:
        self._answers_probes = answers_probes
        self.requests: list[Json] = []
        self.authorizations: list[str] = []
        self._always = script if callable(script) else None
        self._script = iter(()) if callable(script) else iter(script)
        self._turn = threading.Lock()
        self._closing = threading.Event()
        self._server: _Server | None = None

    @property
    def base_url(self) -> str:
        """The base URL of the endpoint. Raises `RuntimeError` outside of the `with` block."""
        if self._server is None:
            raise RuntimeError("the endpoint does not serve; use it with `with` or `async with`")
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def respond(self, request: Json, authorization: str) -> Reply:
        """Record a request and return the reply to it. A reply that hangs is returned when the endpoint closes."""
        if self._answers_probes and is_probe(request):
            return Reply(PROBE_ANSWER)
        with self._turn:
            self.requests.append(request)
            self.authorizations.append(authorization)
            step = self._always or next(self._script, Reply(status=404, code="script_over"))
        reply = step(request) if callable(step) else step
        if reply.hangs:
            self._closing.wait()
        return reply


class OracleExtractor:
    """An extractor with prepared answers: candidates for each window that contains a text, or a function of the window.

    `windows` holds the windows that it was asked for, `rejections` the candidates that it should repair. `mend` returns
    the repaired ones, by default none. `version` takes the place of a model's name and its prompt's version.

        oracle = OracleExtractor({"I moved to Graz": [graz]})
        assert (await oracle.extract(window)).candidates == (graz,)
    """

    def __init__(
        self,
        answers: Mapping[str, Sequence[Candidate]] | Callable[[Window], Sequence[Candidate]],
        mend: Callable[[Window, Sequence[Rejection]], Sequence[Candidate]] | None = None,
        version: str = "oracle:1",
    ) -> None:
        self.windows: list[Window] = []
        self.rejections: list[Rejection] = []
        self._answers = answers
        self._mend = mend
        self.version = version

    async def extract(self, window: Window) -> Extraction:
        """Return the prepared candidates whose text stands in a turn of the window, in the order of `answers`."""
        self.windows.append(window)
        if callable(self._answers):
            return Extraction(tuple(self._answers(window)))
        said = [turn.text for turn in window.turns]
        answers = (known for text, known in self._answers.items() if any(text in words for words in said))
        return Extraction(tuple(candidate for known in answers for candidate in known))

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Record the rejections and return the candidates that `mend` makes of them."""
        self.rejections.extend(rejections)
        return Extraction(tuple(self._mend(window, rejections)) if self._mend else ())


def completion(request: Json, reply: Reply) -> Json:
    """Return a reply as the body of a chat completion: as a tool call if the request forces a tool, else as text."""
    tool = forced_tool(request)
    message: Json = {"role": "assistant", "content": reply.content}
    if reply.refusal is not None:
        message = {"role": "assistant", "content": None, "refusal": reply.refusal}
    elif tool:
        functions = [{"name": reply.tool_name or tool, "arguments": text} for text in (reply.content, *reply.calls)]
        calls = [
            {"id": f"call_{n}", "type": "function", "function": function} for n, function in enumerate(functions, 1)
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    choices = [{"index": 0, "message": message, "finish_reason": reply.finish_reason}]
    prompt, answer = len(json.dumps(request["messages"])) // 4, len(reply.content) // 4
    usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    body: Json = {"id": "scripted", "object": "chat.completion", "created": 0, "model": request.get("model")}
    return {**body, "choices": choices if reply.choices else [], **({"usage": usage} if reply.usage else {})}


def _body(request: Json, reply: Reply) -> bytes:
    if reply.body is not None:
        return reply.body if isinstance(reply.body, bytes) else reply.body.encode()
    error = {"error": {"message": reply.content or f"scripted {reply.status}", "code": reply.code}}
    return json.dumps(completion(request, reply) if reply.status == 200 else error, ensure_ascii=False).encode()


class _Server(ThreadingHTTPServer):
    # With the default backlog of 5, clients that connect at the same time would wait a second each.
    request_queue_size = 128


def _handler(endpoint: ScriptedEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(length := int(self.headers["Content-Length"]))
            if len(body) < length:
                return  # the client was killed while it asked
            request = json.loads(body)
            reply = endpoint.respond(request, self.headers.get("Authorization", ""))
            # The client may have given up.
            with suppress(ConnectionError):
                self._send(reply, _body(request, reply))

        def _send(self, reply: Reply, body: bytes) -> None:
            self.send_response(reply.status)
            sent = {"Content-Type": "application/json", "Content-Length": str(len(body)), **reply.headers}
            for name, value in sent.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Write nothing, to keep the output of tests clean."""

    return Handler
