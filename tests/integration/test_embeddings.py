"""Vectors from an endpoint: asked for over HTTP, and a live memory that has them made in the background."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from autogen_core.memory import MemoryContent
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage

from afterword import FactMemory
from afterword.extractors.clients import ModelSettings
from afterword.extractors.embeddings import EndpointEmbedder
from afterword.store.embedding import EmbeddingUnavailable, Vector
from afterword.store.engine import Store

PRIVATE = "my therapist is Dr. Quillfeather"


class Endpoint:
    """An endpoint on loopback that answers with the lengths of the texts, in reverse order of the input."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.status = 200
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.requests.append(asked)
                body = json.dumps(endpoint.answer(asked["input"])).encode()
                self.send_response(endpoint.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def answer(self, texts: Sequence[str]) -> dict[str, Any]:
        data = [
            {"object": "embedding", "index": place, "embedding": [float(len(one)), 1.0]}
            for place, one in enumerate(texts)
        ]
        return {"object": "list", "model": "m", "data": data[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    def settings(self) -> ModelSettings:
        return ModelSettings("lengths", f"http://127.0.0.1:{self.server.server_port}/v1", "key", max_retries=0)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    served = Endpoint()
    thread = threading.Thread(target=served.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()


async def test_vectors_come_in_the_order_of_the_texts(endpoint: Endpoint) -> None:
    async with EndpointEmbedder(endpoint.settings(), 2) as embedder:
        assert await embedder.embed(["a", "bbb"]) == [[1.0, 1.0], [3.0, 1.0]]
        assert (embedder.model, embedder.dimension) == ("lengths", 2)
    assert "dimensions" not in endpoint.requests[0]


async def test_a_shorter_vector_is_asked_for_only_when_told_so(endpoint: Endpoint) -> None:
    async with EndpointEmbedder(endpoint.settings(), 2, is_shortened=True) as embedder:
        await embedder.embed(["a"])
    assert endpoint.requests[0]["dimensions"] == 2


async def test_vectors_of_another_size_are_refused(endpoint: Endpoint) -> None:
    async with EndpointEmbedder(endpoint.settings(), 3) as embedder:
        with pytest.raises(EmbeddingUnavailable, match="set the model's own dimension"):
            await embedder.embed(["a"])


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_fault_names_the_place_and_never_the_words(endpoint: Endpoint, status: int) -> None:
    endpoint.status = status
    async with EndpointEmbedder(endpoint.settings(), 2) as embedder:
        with pytest.raises(EmbeddingUnavailable, match="'lengths'") as refused:
            await embedder.embed([PRIVATE])
    assert "Quillfeather" not in str(refused.value)
    assert refused.value.__context__ is None


class Counted:
    """An embedder of our own that counts how often it is asked."""

    model, dimension = "counted", 2

    def __init__(self) -> None:
        self.asked = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked += 1
        return [[float("tea" in one.lower()), 1.0] for one in texts]


async def test_a_live_memory_has_its_vectors_made_in_the_background() -> None:
    pytest.importorskip("numpy")
    async with Store("sqlite://") as store:
        await store.migrate()
        embedder = Counted()
        memory = FactMemory(user="lena", store=store, budget_tokens=120, embedder=embedder)
        for number in range(20):
            await memory.add(MemoryContent(content=f"Lena keeps lamp number {number}.", mime_type="text/plain"))
        context = UnboundedChatCompletionContext()
        await context.add_message(UserMessage(content="which lamp?", source="user"))
        await memory.update_context(context)
        for _ in range(100):
            await asyncio.sleep(0.02)
            if embedder.asked:
                break
        made = embedder.asked
        assert made >= 1
        await asyncio.sleep(0.1)
        await memory.update_context(context)
        await memory.update_context(context)
        assert embedder.asked == made + 2, "one question a turn, and nothing made twice"
        await memory.close()
