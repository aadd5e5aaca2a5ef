"""One suite over every database: SQLite in memory, a SQLite file, and PostgreSQL."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from afterword.store.database.engine import Store
from leaks import Resources


@pytest.fixture
async def _no_task_left() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() - before - {asyncio.current_task()} == set()


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail where a test leaves a task, a thread, a connection or an open store."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("_no_task_left")
    before = Resources.now()
    yield
    assert before.leaks() == []


@pytest.fixture(params=["file", "postgres"])
async def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store with its tables, which several processes can open."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store_url"))
    async with Store(f"sqlite:///{tmp_path}/afterword.db") as made:
        await made.migrate()
    return f"sqlite:///{tmp_path}/afterword.db"


@pytest.fixture(params=["memory", "file", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store with its tables."""
    if request.param == "postgres":
        async with Store(request.getfixturevalue("postgres_store_url")) as opened:
            yield opened
        return
    url = "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/afterword.db"
    async with Store(url) as opened:
        await opened.migrate()
        yield opened
