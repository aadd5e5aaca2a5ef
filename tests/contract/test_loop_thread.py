"""The database is used in the store's own threads: the event loop of a live agent never waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from afterword import FactMemory
from afterword.store.database.engine import Store
from all_stages import live
from conversing import call, told

Work = list[tuple[int, str]]


@pytest.fixture
def database_work() -> Iterator[Work]:
    """What is done at the border of the databases, each with the thread that does it."""
    work: Work = []

    def on_statement(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        work.append((threading.get_ident(), statement))

    def on_connect(*_: object) -> None:
        work.append((threading.get_ident(), "connect"))

    def on_begin(_: object) -> None:
        work.append((threading.get_ident(), "begin"))

    def on_commit(_: object) -> None:
        work.append((threading.get_ident(), "commit"))

    listeners: dict[str, Callable[..., None]] = {
        "before_cursor_execute": on_statement,
        "do_connect": on_connect,
        "begin": on_begin,
        "commit": on_commit,
    }
    for name, listener in listeners.items():
        event.listen(Engine, name, listener)
    yield work
    for name, listener in listeners.items():
        event.remove(Engine, name, listener)


async def test_every_stage_uses_the_database_outside_of_the_event_loop(
    shared_url: str, database_work: Work, tmp_path: Path
) -> None:
    """A batch, an undo, consolidation, a recorded turn, the schedule, recall, export, import and forgetting."""
    async with Store(shared_url) as store:
        await live(store, tmp_path)
    assert _in_this_thread(database_work) == []
    assert {"connect", "begin", "commit"} <= {work for _, work in database_work}


async def test_the_tools_of_an_agent_use_the_database_outside_of_the_event_loop(
    shared_url: str, database_work: Work
) -> None:
    async with Store(shared_url) as store:
        answers = await told(
            FactMemory(user="lena", store=store),
            "I like tea.",
            call("remember", statement="The user likes tea.", quote="I like tea"),
            call("recall", query="tea"),
            call("withdraw", fact="The user likes tea.", quote="I like tea"),
        )
    assert answers[0].startswith("Noted for this conversation")
    assert len(answers) == 3
    assert _in_this_thread(database_work) == []
    assert database_work


def _in_this_thread(database_work: Work) -> list[str]:
    """Return what was done in the thread of the event loop that runs the test."""
    return [work for thread, work in database_work if thread == threading.get_ident()]
