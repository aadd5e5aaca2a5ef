"""Opening a store: the engine, its pragmas, transactions, and tables brought up to date.

Several loops may use one store: SQLite files are opened afresh for each transaction, and PostgreSQL has one pool for
each running loop.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool, StaticPool
from sqlmodel.ext.asyncio.session import AsyncSession

from afterword.store import migrations
from afterword.store.cache import Cache, Draft
from afterword.store.errors import Overtaken, StoreInvalid, StoreMissing, StoreOutdated, StoreUnreachable
from afterword.store.privacy import Privacy

T = TypeVar("T")

_MIGRATING = threading.Lock()
_MIGRATING_PAUSE_S = 0.01

DEFAULT_URL = "sqlite:///afterword.db"
DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
BUSY_TIMEOUT_MS = 30_000
OVERTAKEN = frozenset({"40001", "40P01"})
"""What PostgreSQL answers where two transactions cannot both be had: serialisation failure, deadlock."""
TRIES = 20


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
        raise StoreInvalid(f"{url.drivername!r} is no database that afterword keeps facts in; use sqlite or postgresql")
    return url.set(drivername=DRIVERS[url.drivername])


def redacted(text: str) -> str:
    """Return a store URL that may be shown: the password is masked."""
    url = store_url(text)
    if "password" in url.query:
        url = url.update_query_dict({"password": "***"})
    return re.sub(r"\+(aiosqlite|psycopg)", "", url.render_as_string(hide_password=True))


class Store:
    """An opened store. Nothing is connected before the first transaction.

    Use `open_store` to get one whose tables are there. Close it with `close()`, or use it as an async context manager.
    `privacy` says what is kept out of it: by default every secret, and what was said off the record.
    """

    def __init__(self, url: str = DEFAULT_URL, *, privacy: Privacy | None = None) -> None:
        self.privacy = privacy or Privacy()
        self._url = store_url(url)
        self.shown_url = redacted(url)
        self._cache = Cache()
        self._shared: AsyncEngine | None = None
        self._engines: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncEngine] = WeakKeyDictionary()
        # A database in memory is one connection, and a connection has one transaction at a time.
        self._turn: AbstractAsyncContextManager[Any] = asyncio.Lock() if self.in_memory else nullcontext()

        self._closing: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"Store({self.shown_url!r})"

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._url.get_backend_name()

    @property
    def in_memory(self) -> bool:
        """Whether it is a SQLite database in memory, which has one connection for all."""
        return self.dialect == "sqlite" and self.path is None

    @property
    def path(self) -> Path | None:
        """The SQLite file, None in memory and on PostgreSQL."""
        name = self._url.database
        return Path(name) if self.dialect == "sqlite" and name and name != ":memory:" else None

    def _engine(self) -> AsyncEngine:
        if self.dialect == "sqlite":
            if self._shared is None:
                self._shared = self._sqlite_engine()
            return self._shared
        loop = asyncio.get_running_loop()
        if loop not in self._engines:
            self._engines[loop] = create_async_engine(
                self._url, pool_pre_ping=True, connect_args={"connect_timeout": 10}, isolation_level="SERIALIZABLE"
            )
        return self._engines[loop]

    def _sqlite_engine(self) -> AsyncEngine:
        if self.path is not None:
            _create_private(self.path)
        pool = NullPool if self.path is not None else StaticPool
        engine = create_async_engine(
            self._url, poolclass=pool, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "isolation_level": None}
        )
        event.listen(engine.sync_engine, "connect", _set_pragmas)
        event.listen(engine.sync_engine, "begin", _begin)
        return engine

    @asynccontextmanager
    async def connection(self, *, writing: bool) -> AsyncIterator[AsyncConnection]:
        """Open one transaction on a plain connection. Raises `StoreUnreachable` where the database does not answer."""
        try:
            async with self._turn, self._engine().connect() as plain:
                options: dict[str, Any] = {"afterword_writing": writing}
                if self.dialect != "sqlite" and not writing:
                    # One consistent view is enough to read: serialisable readers would be overtaken by writers.
                    options["isolation_level"] = "REPEATABLE READ"
                connection = await plain.execution_options(**options)
                async with connection.begin():
                    yield connection
        except DatabaseError as error:
            # Its other subclasses are faults of a statement, not of the database.
            if not isinstance(error, OperationalError) and type(error) is not DatabaseError:
                raise
            reason = _reason(error)
            if getattr(error.orig, "sqlstate", None) in OVERTAKEN:
                raise Overtaken(f"another process changed the same rows of {self.shown_url} first; try again") from None
            raise StoreUnreachable(f"{self.shown_url} does not answer ({reason}); see `afterword doctor`") from None

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """Open a transaction that only reads: one consistent view."""
        draft = Draft(self._cache)
        async with self.connection(writing=False) as connection, _session(connection, draft) as db:
            yield db
        draft.commit()

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """Open a transaction that writes: committed at the end, rolled back on any error, one writer at a time."""
        draft = Draft(self._cache)
        async with self.connection(writing=True) as connection, _session(connection, draft) as db:
            yield db
            await db.flush()
        draft.commit()

    async def written(self, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """Do the work in a transaction that writes, again from its beginning where another process was faster.

        Raises `Overtaken` after 20 tries.
        """
        for attempt in range(TRIES - 1):
            try:
                async with self.write() as db:
                    return await work(db)
            except Overtaken:
                await pause(attempt)
        async with self.write() as db:
            return await work(db)

    async def migrate(self) -> tuple[str | None, str]:
        """Bring the tables up to date; return the versions before and after.

        Raises `StoreTooNew` where a newer afterword wrote the store.
        """
        # Alembic keeps the migration that it runs in globals of the process; others wait, whatever loop they run in.
        while not _MIGRATING.acquire(blocking=False):  # noqa: ASYNC110 - an event belongs to one loop
            await asyncio.sleep(_MIGRATING_PAUSE_S)
        try:
            async with self.connection(writing=True) as connection:
                return await connection.run_sync(migrations.upgrade)
        finally:
            _MIGRATING.release()

    async def check(self) -> None:
        """Raise `StoreOutdated` or `StoreTooNew` where the tables are not those of this program."""
        async with self.connection(writing=False) as connection:
            await connection.run_sync(migrations.check)

    def on_close(self, work: Callable[[], None]) -> None:
        """Have something done whenever the store is closed; it may be opened again."""
        self._closing.append(work)

    async def close(self) -> None:
        """Close every connection of the running loop."""
        for work in self._closing:
            work()
        loop = asyncio.get_running_loop()
        engines = [engine for engine in (self._shared, self._engines.pop(loop, None)) if engine is not None]
        self._shared, self._cache = None, Cache()
        for engine in engines:
            await engine.dispose()

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _session(connection: AsyncConnection, draft: Draft) -> AsyncSession:
    return AsyncSession(bind=connection, info={Draft: draft})


async def pause(attempt: int) -> None:
    """Wait before another try, longer each time: whoever collides would collide again in step, chance parts them."""
    await asyncio.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 5)))


async def open_store(url: str | None = None, *, create: bool = True, privacy: Privacy | None = None) -> Store:
    """Return a store whose tables are there and up to date.

    `url` defaults to `AFTERWORD_STORE__URL`, else `sqlite:///afterword.db`. SQLite stores are made (unless `create` is
    False) and brought up to date here; a PostgreSQL store waits for `afterword migrate`. `privacy` as for `Store`.
    Raises `StoreMissing`, `StoreUnreachable`, `StoreOutdated` or `StoreTooNew`.
    """
    store = Store(url or os.environ.get("AFTERWORD_STORE__URL") or DEFAULT_URL, privacy=privacy)
    if not create and store.path is not None and not store.path.exists():
        raise StoreMissing(
            f"there is no store at {store.path}; `afterword run` makes one, AFTERWORD_STORE__URL names it"
        )
    async with AsyncExitStack() as on_failure:
        on_failure.push_async_callback(store.close)
        try:
            # Reading is enough where the tables are up to date; it waits for no writer.
            await store.check()
        except StoreOutdated:
            if store.dialect != "sqlite":
                raise
            await store.migrate()
        on_failure.pop_all()
    return store


def _create_private(path: Path) -> None:
    """Create the file readable by its owner alone, before SQLite would create it with the usual mode."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        reason = f"{path} cannot be opened ({error.strerror})"
        raise StoreUnreachable(f"{reason}; choose another place with AFTERWORD_STORE__URL") from None


PRAGMAS = f"""
    PRAGMA journal_mode=WAL;
    PRAGMA foreign_keys=ON;
    PRAGMA secure_delete=ON;
    PRAGMA busy_timeout={BUSY_TIMEOUT_MS};
"""
"""A live agent must be able to recall while the batch job commits; only WAL lets a reader pass a writer."""


def _set_pragmas(connection: Any, _record: object) -> None:
    # At once: each statement of its own costs a change of threads and back.
    connection.run_async(lambda driver: driver.executescript(PRAGMAS))


def _begin(connection: Any) -> None:
    # A transaction that reads first and writes later loses updates of others unless it takes the lock at once.
    writing = connection.get_execution_options().get("afterword_writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _reason(error: DBAPIError) -> str:
    return type(error.orig).__name__ if error.orig is not None else type(error).__name__
