"""The URL of a store: which database and driver it means, and how it is shown without secrets."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from afterword.errors import StoreInvalid

DEFAULT_URL = "sqlite:///afterword.db"
DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+aiosqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_SHOWN_OPTIONS = frozenset(
    "host hostaddr port dbname user sslmode application_name connect_timeout target_session_attrs mode cache".split()
)
"""Options of a URL that hold no secret."""


def store_url(text: str) -> URL:
    """Return the database URL with the driver that afterword uses.

    Takes `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://` (in memory) and `postgresql://...`.
    Raises `StoreInvalid` for anything else, without repeating a password.
    """
    try:
        url = make_url(text)
    except ArgumentError:
        raise StoreInvalid("the store's URL cannot be read; write sqlite:///afterword.db or postgresql://...") from None
    if url.drivername not in DRIVERS:
        raise StoreInvalid(f"afterword does not support the database {url.drivername!r}; use sqlite or postgresql")
    return url.set(drivername=DRIVERS[url.drivername])


def postgres_url(url: URL, **settings: object) -> URL:
    """Return the URL of a PostgreSQL database with these settings, and with the settings that the driver needs.

    They hold for the connection, whatever settings the database and its roles have.
    """
    settings = {"datestyle": "ISO", **settings}
    options = [url.query.get("options", ""), *(f"-c {name}={value}" for name, value in settings.items())]
    return url.update_query_dict({"client_encoding": "utf8", "options": " ".join(map(str, options)).strip()})


def check_encoding(connection: Any, *_: object) -> None:
    """Close a new connection of psycopg and raise `StoreInvalid` unless its database has the encoding UTF8."""
    encoding, name = connection.info.parameter_status("server_encoding"), connection.info.dbname
    if encoding != "UTF8":
        connection.close()
        raise StoreInvalid(
            f"the database {name} has the encoding {encoding}, and afterword needs UTF8; "
            "make another one (createdb --encoding UTF8 --template template0 NAME), and name it in AFTERWORD_STORE__URL"
        )


def shown_url(text: str) -> str:
    """Return a store URL that may be shown: the password is masked, and every option that may hold a secret."""
    url = store_url(text)
    url = url.update_query_dict({name: "***" for name in url.query if name not in _SHOWN_OPTIONS})
    return re.sub(r"\+psycopg", "", url.render_as_string(hide_password=True))
