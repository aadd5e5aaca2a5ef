"""autogen-ext's `ChromaDBVectorMemory`: a persistent client, `query` filtered by the user in the metadata.

Filled by the `add` of its own collection, as many at a time as Chroma takes: `ChromaDBVectorMemory.add` takes one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import given
from autogen_core.memory import MemoryQueryResult
from autogen_ext.memory.chromadb import (
    ChromaDBVectorMemory,
    CustomEmbeddingFunctionConfig,
    PersistentChromaDBVectorMemoryConfig,
)
from chromadb import EmbeddingFunction


class Embedder(EmbeddingFunction[list[str]]):
    """Hands over the vectors that were made."""

    def __init__(self, one: given.Given) -> None:
        self._one = one

    def __call__(self, input: list[str]) -> Any:  # noqa: A002 - Chroma asks for this name
        """Return the vectors of the texts."""
        return [self._one.vector(text) for text in input]


def _memory(folder: Path, one: given.Given) -> ChromaDBVectorMemory:
    return ChromaDBVectorMemory(
        PersistentChromaDBVectorMemoryConfig(
            collection_name="facts",
            persistence_path=str(folder / "chroma"),
            k=given.LIMIT,
            embedding_function_config=CustomEmbeddingFunctionConfig(function=lambda: Embedder(one)),
        )
    )


async def fill(folder: Path, one: given.Given) -> None:
    """Write memories of one user."""
    memory = _memory(folder, one)
    memory._ensure_initialized()
    client, collection = memory._client, memory._collection
    if client is None or collection is None:
        raise SystemExit("Chroma did not open")
    step = client.get_max_batch_size()
    for start in range(0, len(one.texts), step):
        some = list(one.texts[start : start + step])
        collection.add(
            ids=[f"{start + row:06d}" for row in range(len(some))],
            documents=some,
            metadatas=[{"user_id": given.USER, "mime_type": "MemoryMimeType.TEXT"} for _ in some],
            embeddings=one.vectors[start : start + step],
        )
    await memory.close()


@asynccontextmanager
async def opened(folder: Path, one: given.Given) -> AsyncIterator[given.Ask]:
    """Open the memory."""
    memory = _memory(folder, one)

    async def ask(query: str) -> MemoryQueryResult:
        return await memory.query(query, where={"user_id": given.USER})

    yield ask
    await memory.close()


def texts(answer: MemoryQueryResult) -> list[str]:
    """Return the memories found."""
    return [str(found.content) for found in answer.results]


if __name__ == "__main__":
    given.main(["autogen-ext", "chromadb"], fill, opened, texts)
