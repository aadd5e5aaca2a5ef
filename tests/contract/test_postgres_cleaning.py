"""Whether what was forgotten is gone from the files of PostgreSQL, and that a receipt tells the truth about it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import sleep

import psycopg
import pytest

import afterword
from afterword.store.database import compaction
from batches import state
from running_time import running_time
from servers import Server

WORD = "Quixtownia"


@contextmanager
def told(url: str, monkeypatch: pytest.MonkeyPatch, **limits: str) -> Iterator[afterword.SyncAfterword]:
    """Open a store in which somebody has said where she lives, in a session with the id `monday`."""
    for name, value in limits.items():
        monkeypatch.setenv(f"AFTERWORD_STORE__{name.upper()}", value)
    with afterword.connect(url) as app:
        app.user("mira").process(state(f"I live in {WORD}."), session_id="monday")
        yield app


def forgotten(app: afterword.SyncAfterword) -> afterword.Receipt:
    """Forget the session, and return the receipt."""
    receipt = app.user("mira").forget(session="monday")
    assert receipt is not None
    return receipt


def end_after(pause_s: float, connection: psycopg.Connection) -> None:
    sleep(pause_s)
    connection.rollback()


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for others for a second, not for half a minute."""
    monkeypatch.setattr(compaction, "TIMEOUT_S", 1.0)


def test_the_words_are_in_no_file_where_nothing_else_was_in_the_tables(
    postgres_server: Server, postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL does not overwrite removed rows: where others stay in their pages, the bytes may stay, too."""
    if postgres_server.own is None:
        pytest.skip("the files of a server that somebody else runs cannot be read")
    with told(postgres_store_url, monkeypatch) as app, psycopg.connect(postgres_store_url, autocommit=True) as owner:
        (database,) = owner.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone() or ()

        def files_with_the_word() -> list[Path]:
            owner.execute("CHECKPOINT")
            files = (postgres_server.own.pgdata / "base" / str(database)).iterdir()
            return [file for file in files if WORD.casefold() in file.read_bytes().decode("latin-1").casefold()]

        assert files_with_the_word()
        assert forgotten(app).is_clean
        assert files_with_the_word() == []


@pytest.mark.usefixtures("short_patience")
def test_an_older_transaction_keeps_the_files_from_being_clean(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with told(postgres_store_url, monkeypatch) as app, psycopg.connect(postgres_store_url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1 FROM turns")
        assert forgotten(app).is_clean is False
        assert app.clean_files() is False
        reader.rollback()
        assert app.clean_files()


def test_an_older_transaction_is_waited_for(postgres_store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        told(postgres_store_url, monkeypatch) as app,
        psycopg.connect(postgres_store_url) as writer,
        ThreadPoolExecutor(1) as ending,
    ):
        writer.execute("SELECT pg_current_xact_id()")
        ended = ending.submit(end_after, 1, writer)
        assert forgotten(app).is_clean
        ended.result()


def test_who_does_not_own_the_tables_is_told_at_once_that_they_are_not_clean(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"afterword_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_store_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'".encode())
        try:
            owner.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}".encode())
            owner.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}".encode())
            parts = {**psycopg.conninfo.conninfo_to_dict(postgres_store_url), "user": role, "password": "x"}
            query = "&".join(f"{name}={value}" for name, value in parts.items())
            with told(f"postgresql://?{query}", monkeypatch) as app, running_time() as elapsed_s:
                assert forgotten(app).is_clean is False
                assert elapsed_s() < compaction.TIMEOUT_S
            with afterword.connect(postgres_store_url) as app:
                assert app.clean_files()
        finally:
            owner.execute(f"DROP OWNED BY {role}".encode())
            owner.execute(f"DROP ROLE {role}".encode())


@pytest.mark.usefixtures("short_patience")
def test_a_lock_that_is_held_for_long_gives_a_receipt_and_no_error(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        told(postgres_store_url, monkeypatch, statement_timeout_s="1") as app,
        psycopg.connect(postgres_store_url) as other,
    ):
        other.execute("LOCK TABLE turns IN SHARE UPDATE EXCLUSIVE MODE")
        receipt = forgotten(app)
        assert receipt.is_clean is False
        assert receipt.erased["facts"] == 1


def test_a_lock_may_be_held_for_longer_than_a_statement_may_take(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        told(postgres_store_url, monkeypatch, statement_timeout_s="1") as app,
        psycopg.connect(postgres_store_url) as other,
        ThreadPoolExecutor(1) as ending,
    ):
        other.execute("LOCK TABLE turns IN SHARE UPDATE EXCLUSIVE MODE")
        ended = ending.submit(end_after, 2, other)
        assert forgotten(app).is_clean
        ended.result()
