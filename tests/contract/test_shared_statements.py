"""Stores of one process share the statements that they compile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.engine.interfaces import CacheStats

from afterword.store.database.engine import Store
from kept import facts_of, run, stated


@contextmanager
def compiled_statements() -> Iterator[list[str]]:
    """Collect the statements that are compiled."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, _values: object, context: Any, _many: bool) -> None:
        if context.compiled is not None and context.cache_hit is not CacheStats.CACHE_HIT:
            statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def use(store: Store) -> None:
    run(store, "session:s1", (stated("The user lives in Graz."),))
    assert [fact.value for fact in await facts_of(store)] == ["The user lives in Graz."]


@pytest.mark.parametrize("kind", ["memory", "postgres"])
async def test_a_second_store_compiles_nothing_anew(kind: str, request: pytest.FixtureRequest) -> None:
    names = ("empty_postgres", "postgres_store_url")
    urls = [request.getfixturevalue(name) for name in names] if kind == "postgres" else ["sqlite://", "sqlite://"]
    async with Store(urls[0]) as first, Store(urls[1]) as second:
        await first.migrate()
        await use(first)
        # SQLAlchemy adds to what it knows of the tables at first use, which makes one statement look like another.
        await facts_of(first)
        await second.migrate()
        with compiled_statements() as anew:
            await use(second)
    assert anew == []
