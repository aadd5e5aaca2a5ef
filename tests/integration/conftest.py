"""Fixtures of the tests that use the whole of it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from autogen_core.memory import MemoryContent, MemoryMimeType

from afterword.agents.memory import FactMemory
from afterword.store.database.engine import Store, open_store
from commands import Commands
from injected import FACT


@pytest.fixture
def afterword(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    """Run a command in an empty folder; return what it prints."""
    return Commands(tmp_path, monkeypatch, capsys)


@pytest.fixture
async def store(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[Store]:
    """An empty store in a file."""
    shutil.copy(sqlite_template, tmp_path / "facts.db")
    async with await open_store(f"sqlite:///{tmp_path / 'facts.db'}") as opened:
        yield opened


@pytest.fixture
async def lena(store: Store) -> FactMemory:
    """Lena's memory, in which one fact is kept."""
    memory = FactMemory(user="lena", store=store)
    await memory.add(MemoryContent(content=FACT, mime_type=MemoryMimeType.TEXT))
    return memory
