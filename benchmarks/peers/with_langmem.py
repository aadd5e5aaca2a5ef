"""LangMem: the search tool over LangGraph's SQLite store, one namespace a user.

Filled by the store's own `batch`, 500 puts at a time. The store needs an SQLite that loads extensions, which Python's
own often does not: the connection is one of pysqlite3's, opened as the store would open it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import given
import pysqlite3
from langchain_core.embeddings import Embeddings
from langchain_core.messages import ToolMessage
from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore
from langmem import create_search_memory_tool


class Embedder(Embeddings):
    """Hands over the vectors that were made."""

    def __init__(self, one: given.Given) -> None:
        self._one = one

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of the texts."""
        return [self._one.vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of the text."""
        return self._one.vector(text)


def _connection(folder: Path) -> Any:
    return pysqlite3.connect(str(folder / "langmem.db"), check_same_thread=False, isolation_level=None)


def _store(connection: Any, one: given.Given) -> SqliteStore:
    # This store reads `text_fields` where its documentation says `fields`.
    index = {"dims": one.vectors.shape[1], "embed": Embedder(one), "text_fields": ["content"]}
    store = SqliteStore(connection, index=index)
    store.setup()
    return store


async def fill(folder: Path, one: given.Given) -> None:
    """Write memories of one user."""
    with closing(_connection(folder)) as connection:
        store = _store(connection, one)
        puts = [PutOp(("memories", given.USER), f"{row:06d}", {"content": text}) for row, text in enumerate(one.texts)]
        for start in range(0, len(puts), 500):
            store.batch(puts[start : start + 500])


@asynccontextmanager
async def opened(folder: Path, one: given.Given) -> AsyncIterator[given.Ask]:
    """Open the store and make the tool that a user's agent is given."""
    with closing(_connection(folder)) as connection:
        store = _store(connection, one)
        tool = create_search_memory_tool(
            ("memories", "{langgraph_user_id}"), store=store, response_format="content_and_artifact"
        )
        config = {"configurable": {"langgraph_user_id": given.USER}}

        async def ask(query: str) -> Any:
            asked = {"name": tool.name, "args": {"query": query, "limit": given.LIMIT}, "id": "1", "type": "tool_call"}
            return tool.invoke(asked, config)

        yield ask


def texts(answer: ToolMessage) -> list[str]:
    """Return the memories found."""
    return [item.value["content"] for item in answer.artifact]


if __name__ == "__main__":
    given.main(["langmem", "langgraph-checkpoint-sqlite"], fill, opened, texts)
