"""Stores as the programs of earlier versions left them, on SQLite and PostgreSQL."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import JSON, Boolean, Connection, Date, DateTime, LargeBinary, MetaData, Table, create_engine, text
from sqlalchemy.engine import Engine
from sqlalchemy.types import TypeEngine

from afterword.store import migrations
from afterword.store.database.urls import store_url

GOLDEN = Path(__file__).parent.parent / "golden" / "stores"
MADE_BY = {"0001": "0001", "0002": "0002", "0003": "0004", "0004": "0004", "0005": "0006", "0006": "0006"}
"""Which program described the rows of each version: none had 0003 or 0005 as its newest, so the next one did."""


def maker() -> Any:
    """The program that made them."""
    spec = importlib.util.spec_from_file_location("make_stores", GOLDEN / "make.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(GOLDEN / "make.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def answers(version: str) -> dict[str, Any]:
    """What the program that made the rows said of them."""
    told: dict[str, Any] = json.loads((GOLDEN / f"{MADE_BY[version]}.json").read_text(encoding="utf-8"))
    return told


def sqlite_at(version: str, path: Path) -> str:
    """Make a SQLite store of a version, and return its address."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript((GOLDEN / f"{version}.sql").read_text(encoding="utf-8"))
    return f"sqlite:///{path}"


def postgres_at(version: str, url: str, path: Path) -> str:
    """Put the rows of a version into an empty PostgreSQL database, by way of a SQLite store at `path`."""
    sqlite_at(version, path)
    engine = _engine(url)
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), version)
    with engine.begin() as connection, closing(sqlite3.connect(path)) as rows:
        rows.row_factory = sqlite3.Row
        held = MetaData()
        held.reflect(connection)
        for table in held.sorted_tables:
            if table.name != migrations.VERSION_TABLE:
                _copy(connection, table, rows)
    engine.dispose()
    return url


def _copy(connection: Connection, table: Table, rows: sqlite3.Connection) -> None:
    kinds = {column.name: column.type for column in table.columns}
    found = [dict(row) for row in rows.execute(f'SELECT * FROM "{table.name}"')]
    if found:
        connection.execute(
            table.insert(), [{name: _as(kinds[name], value) for name, value in row.items()} for row in found]
        )
    if "id" in kinds and kinds["id"].python_type is int:
        last = f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), coalesce(max(id), 1)) FROM {table.name}"
        connection.execute(text(last))


def _as(kind: TypeEngine[Any], value: Any) -> Any:
    """Return what SQLite keeps as PostgreSQL takes it."""
    if value is None or isinstance(kind, LargeBinary):
        return value
    if isinstance(kind, Boolean):
        return bool(value)
    if isinstance(kind, JSON):
        return json.loads(value)
    if isinstance(kind, DateTime):
        at = datetime.fromisoformat(value)
        return at.replace(tzinfo=at.tzinfo or UTC) if kind.timezone else at
    return date.fromisoformat(value) if isinstance(kind, Date) else value


def alembic_config(connection: Connection) -> Config:
    """Return what Alembic's own commands need to work on a connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    return config


def _engine(url: str) -> Engine:
    return create_engine(str(store_url(url).render_as_string(hide_password=False)))
