"""Databases of PostgreSQL with settings of their own: other encodings are refused, other forms of dates are read."""

from __future__ import annotations

import psycopg
import pytest

import afterword
from afterword.doctor import run_checks
from afterword.errors import StoreInvalid
from afterword.store.database.engine import Store

OTHERS = "LATIN1", "SQL_ASCII"


@pytest.fixture(params=OTHERS)
def encoded(request: pytest.FixtureRequest, empty_postgres: str) -> str:
    """The address of an empty database with another encoding than UTF8."""
    name = psycopg.conninfo.conninfo_to_dict(empty_postgres)["dbname"]
    with psycopg.connect(request.getfixturevalue("postgres_url"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name}".encode())
        made = f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{request.param}' LOCALE 'C'"
        connection.execute(made.encode())
    return empty_postgres


async def test_a_database_with_another_encoding_is_refused_before_anything_is_made(
    encoded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Store(encoded) as store:
        with pytest.raises(StoreInvalid, match="needs UTF8"):
            await store.migrate()
    with pytest.raises(StoreInvalid, match="needs UTF8"):
        await afterword.open(encoded).scopes()
    monkeypatch.setenv("AFTERWORD_STORE__URL", encoded)
    (check,) = (check for check in await run_checks() if check.name == "store")
    assert not check.ok
    assert "needs UTF8" in check.finding
    with psycopg.connect(encoded) as connection:
        assert connection.execute("SELECT 1 FROM pg_class WHERE relname = 'afterword_version'").fetchall() == []


async def test_dates_and_texts_are_read_whatever_the_database_prefers(empty_postgres: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(empty_postgres)["dbname"]
    with psycopg.connect(empty_postgres, autocommit=True) as connection:
        for setting in ("datestyle = 'SQL, DMY'", "client_encoding = 'LATIN1'"):
            connection.execute(f"ALTER DATABASE {name} SET {setting}".encode())
    async with afterword.open(empty_postgres) as app:
        await app.migrate()
        mira = app.user("mira")
        await mira.remember("The user lives in Łódź.")
        (fact,) = (await mira.facts()).facts
    assert fact.statement == "The user lives in Łódź."
    assert fact.said_at.tzinfo is not None
