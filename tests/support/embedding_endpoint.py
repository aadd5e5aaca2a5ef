"""An embedding endpoint on loopback: it answers with the lengths of the texts, and fails as it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from afterword.extractors.model.client import ModelSettings

KEY = "an-embedding-key-that-nobody-may-see"


class EmbeddingEndpoint:
    """Keeps what it was asked. Vectors come in reverse order of the input.

    `status` is what it answers with, `most_texts` and `longest` what it takes at once before it answers with 400;
    `number` is what each vector consists of, if it is given. `tokens` is what it says that a request took (None: it
    does not say).
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.status, self.most_texts, self.longest = 200, 10_000, 1_000_000
        self.tokens: int | None = 1
        self.dimension = 2
        self.number: float | None = None
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.requests.append(asked)
                endpoint.keys.add(str(self.headers["authorization"]))
                body = json.dumps(endpoint.answer(asked["input"])).encode()
                self.send_response(endpoint.status_of(asked["input"]))
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    @property
    def texts(self) -> list[str]:
        """Every text that it was sent, in order."""
        return [text for request in self.requests for text in request["input"]]

    def status_of(self, texts: Sequence[str]) -> int:
        """Return the status of the answer."""
        is_too_much = len(texts) > self.most_texts or max(map(len, texts)) > self.longest
        return 400 if is_too_much else self.status

    def answer(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return one vector a text."""
        data = [
            {"object": "embedding", "index": place, "embedding": self.vector(one)} for place, one in enumerate(texts)
        ]
        usage = {} if self.tokens is None else {"usage": {"prompt_tokens": self.tokens, "total_tokens": self.tokens}}
        return {"object": "list", "model": "m", "data": data[::-1], **usage}

    def vector(self, text: str) -> list[float]:
        """Return the vector of a text."""
        if self.number is not None:
            return [self.number] * self.dimension
        return [float(len(text)), *[1.0] * (self.dimension - 1)]

    def settings(self) -> ModelSettings:
        """Return what asks it once."""
        return ModelSettings("lengths", self.url, "key", max_retries=0)

    def environment(self, **more: str) -> dict[str, str]:
        """Return the variables that configure it."""
        given = {"KIND": "endpoint", "MODEL": "lengths", "BASE_URL": self.url, "API_KEY": KEY, "DIMENSION": "2"}
        return {f"AFTERWORD_EMBEDDING__{name}": value for name, value in (given | more).items()}


@contextmanager
def serving() -> Iterator[EmbeddingEndpoint]:
    """Serve it until the end."""
    served = EmbeddingEndpoint()
    thread = threading.Thread(target=served.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.server.shutdown()
        served.server.server_close()
        thread.join()
