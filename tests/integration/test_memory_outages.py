"""A turn survives a store that is slow, damaged or not there; an application hears of it."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from pathlib import Path

import pytest
from autogen_core import CancellationToken
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage

from afterword.agents.memory import FactMemory
from afterword.errors import StoreError
from afterword.store.database.engine import Store
from kept import text, texts
from running_time import running_time

pytestmark = pytest.mark.begun_first

LESS_THAN_A_CONNECTION_WAITS_S = 9.0


async def survives(memory: FactMemory) -> None:
    context = UnboundedChatCompletionContext()
    await context.add_message(UserMessage(content="hello", source="user"))
    with running_time() as elapsed_s:
        assert (await memory.update_context(context)).memories.results == []
        assert (await memory.query("hello")).results == []
        assert elapsed_s() < LESS_THAN_A_CONNECTION_WAITS_S
    assert len(await context.get_messages()) == 1


async def test_a_turn_survives_a_store_that_is_a_directory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await survives(FactMemory(user="lena", store=f"sqlite:///{tmp_path}"))
    assert "was not read" in caplog.text
    assert "lena" not in caplog.text


async def test_a_turn_survives_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "facts.db").write_bytes(b"not a database" * 1000)
    await survives(FactMemory(user="lena", store=f"sqlite:///{tmp_path / 'facts.db'}"))


async def test_a_turn_survives_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    await survives(FactMemory(user="lena", store=f"postgresql://me:pw@127.0.0.1:{port}/facts"))


async def test_a_turn_survives_a_server_that_never_answers() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://me:pw@127.0.0.1:{silent.getsockname()[1]}/facts"
        memory = FactMemory(user="lena", store=url, timeout_s=0.3)
        await survives(memory)
        await memory.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing goes on behind a memory that is closed"


async def test_a_turn_survives_a_table_that_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    memory = FactMemory(user="lena", store=f"sqlite:///{path}")
    await memory.add(text("Lena likes tea."))
    with sqlite3.connect(path) as broken:
        broken.execute("UPDATE facts SET spans = '[{}]'")
    await survives(memory)
    await memory.close()


async def test_a_turn_keeps_the_block_that_it_has_while_the_store_is_down(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    memory = FactMemory(user="lena", store=f"sqlite:///{path}")
    await memory.add(text("Lena likes tea."))
    context = UnboundedChatCompletionContext()
    await memory.update_context(context)
    with sqlite3.connect(path) as broken:
        broken.execute("ALTER TABLE scopes RENAME TO elsewhere")
    assert (await memory.update_context(context)).memories.results == []
    assert "Lena likes tea." in str((await context.get_messages())[0].content)
    await memory.close()


async def test_a_writer_at_work_does_not_stop_a_turn(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(text("Lena likes tea."))
    with store.writing():
        assert await texts(memory) == ["Lena likes tea."]


async def test_adding_to_a_store_that_is_down_is_an_error(tmp_path: Path) -> None:
    """A turn may go on without memory; an application that wants something kept must hear that it was not."""
    with pytest.raises(StoreError):
        await FactMemory(user="lena", store=f"sqlite:///{tmp_path}").add(text("Lena likes tea."))


async def test_cancellation_passes_through() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        memory = FactMemory(user="lena", store=f"postgresql://127.0.0.1:{silent.getsockname()[1]}/facts", timeout_s=30)
        turn = asyncio.ensure_future(memory.update_context(UnboundedChatCompletionContext()))
        await asyncio.sleep(0.1)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        token = CancellationToken()
        asyncio.get_running_loop().call_later(0.1, token.cancel)
        with pytest.raises(asyncio.CancelledError):
            await memory.query("tea", token)
