"""mem0: `Memory.search` filtered by the user. The last argument is its vector store, a local file: `qdrant` or `faiss`.

Filled below `Memory.add`, which asks a model about every message: with the payloads that `add` would leave, by the
`insert` of its own vector store.
"""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import given
from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase

SETTINGS: dict[str, dict[str, Any]] = {"qdrant": {"on_disk": True}, "faiss": {"distance_strategy": "cosine"}}
PACKAGES = {"qdrant": "qdrant-client", "faiss": "faiss-cpu"}
SAID = "2026-01-01T00:00:00+00:00"


class Embedder(EmbeddingBase):
    """Hands over the vectors that were made."""

    def __init__(self, one: given.Given) -> None:
        super().__init__()
        self._one = one

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
        """Return the vector of the text."""
        return self._one.vector(text)


def _memory(kind: str, folder: Path, one: given.Given) -> Memory:
    place = {"path": str(folder / kind), "collection_name": "facts", "embedding_model_dims": one.vectors.shape[1]}
    store = {"provider": kind, "config": {**place, **SETTINGS[kind]}}
    memory = Memory.from_config({"vector_store": store, "history_db_path": str(folder / "history.db")})
    memory.embedding_model = Embedder(one)
    return memory


def _payload(text: str) -> dict[str, str]:
    hashed = hashlib.md5(text.encode()).hexdigest()
    dated = {"created_at": SAID, "updated_at": SAID}
    return {"user_id": given.USER, "role": "user", "data": text, "hash": hashed, "text_lemmatized": text, **dated}


def _close(memory: Memory) -> None:
    memory.close()
    if hasattr(memory.vector_store, "client"):
        memory.vector_store.client.close()


async def fill(folder: Path, one: given.Given) -> None:
    """Write memories of one user."""
    memory = _memory(KIND, folder, one)
    if KIND == "qdrant":  # it commits each point by itself, and each commit waits for the disk
        memory.vector_store.client._client.collections["facts"].storage.storage.execute("PRAGMA synchronous=OFF")
    # FAISS writes its whole file anew with each insert.
    step = len(one.texts) if KIND == "faiss" else 1000
    for start in range(0, len(one.texts), step):
        some = one.texts[start : start + step]
        vectors = one.vectors[start : start + step].tolist()
        memory.vector_store.insert(vectors, [_payload(text) for text in some], [str(uuid.uuid4()) for _ in some])
    _close(memory)


@asynccontextmanager
async def opened(folder: Path, one: given.Given) -> AsyncIterator[given.Ask]:
    """Open the memory."""
    memory = _memory(KIND, folder, one)

    async def ask(query: str) -> dict[str, Any]:
        found: dict[str, Any] = memory.search(query, top_k=given.LIMIT, filters={"user_id": given.USER})
        return found

    yield ask
    _close(memory)


def texts(answer: dict[str, Any]) -> list[str]:
    """Return the memories found."""
    return [found["memory"] for found in answer["results"]]


if __name__ == "__main__":
    KIND = sys.argv.pop()
    given.main(["mem0ai", PACKAGES[KIND]], fill, opened, texts)
