"""afterword: words and vectors, one user's scope in a SQLite file, filled as recall_speed fills it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import given
import recall_speed

from afterword.facts.scopes import Scope
from afterword.store.database.engine import Store
from afterword.store.reading.recall import Recall, search


class Asked(recall_speed.Given):
    """The vectors of recall_speed for the facts, and those that were made for the queries."""

    def __init__(self, one: given.Given) -> None:
        super().__init__()
        self._one = one

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return the vectors of queries."""
        return [self._one.asked[text] for text in texts]


async def fill(folder: Path, one: given.Given) -> None:
    """Write facts, sources and vectors as processing would leave them."""
    async with Store(f"sqlite:///{folder}/afterword.db") as store:
        await store.migrate()
        await recall_speed.fill(store, 1, len(one.texts), vectors=True)


@asynccontextmanager
async def opened(folder: Path, one: given.Given) -> AsyncIterator[given.Ask]:
    """Open the store; its view is kept with it."""
    embedder = Asked(one)
    async with Store(f"sqlite:///{folder}/afterword.db") as store:

        async def ask(query: str) -> Recall:
            scope = Scope.user(given.USER)
            return await search(store, scope, query, at=recall_speed.NOW, limit=given.LIMIT, embedder=embedder)

        yield ask


def texts(answer: Recall) -> list[str]:
    """Return the statements of the facts found."""
    return [fact.statement for fact in answer.facts]


if __name__ == "__main__":
    given.main(["afterword"], fill, opened, texts)
