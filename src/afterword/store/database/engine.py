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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool, StaticPool
from sqlmodel.ext.asyncio.session import AsyncSession

from afterword import telemetry
from afterword.errors import Overtaken, StoreInvalid, StoreMissing, StoreOutdated, StoreUnreachable
from afterword.privacy.policy import Privacy
from afterword.store import migrations
from afterword.store.database import compaction, driver
from afterword.store.database.cache import Cache, Draft

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
KEPT_OPEN = 4
"""How many connections to a SQLite file are kept open while it is held; one writes, the others read."""
OVERTAKEN = frozenset({"40001", "40P01"})
"""What PostgreSQL answers where two transactions cannot both be had: serialisation failure, deadlock."""
TRIES = 20
STRICT, USUAL, MIGRATING = "SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"
"""Levels of PostgreSQL. Writers of one scope meet at its row, which each of them writes, so one snapshot is enough;
where sums over many rows decide, it is not. Measured on 96 sessions of 16 scopes, 8 at once: 300 refused transactions
and a tenth of the sessions failed with all of them serializable, none with one snapshot, in a third of the time."""
TAKEN = "23505"
"""What PostgreSQL answers where another transaction made the same row, unseen by this one."""


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


@dataclass(frozen=True, slots=True)
class Connections:
    """Of a PostgreSQL store: how many connections a process keeps open (twice as many for a moment), and how long a
    statement may take."""

    pool_size: int = 10
    statement_timeout_s: float = 60.0


@dataclass(slots=True)
class _Held:
    """The connections to a SQLite file that one loop keeps open, and whose turn it is to write."""

    engine: AsyncEngine
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    holders: int = 0


class Store:
    """An opened store. Nothing is connected before the first transaction.

    Use `open_store` to get one whose tables are there. Close it with `close()`, or use it as an async context manager.
    `privacy` says what is kept out of it: by default every secret, and what was said off the record.
    """

    def __init__(
        self, url: str = DEFAULT_URL, *, privacy: Privacy | None = None, connections: Connections | None = None
    ) -> None:
        self.privacy = privacy or Privacy()
        self._connections = connections or Connections()
        self._url = store_url(url)
        self.shown_url = redacted(url)
        self._cache = Cache()
        self._shared: AsyncEngine | None = None
        self._engines: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncEngine] = WeakKeyDictionary()
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, _Held] = WeakKeyDictionary()
        # A database in memory is one connection, and a connection has one transaction at a time.
        self._turn = asyncio.Lock()
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

    @property
    def libpq_url(self) -> str:
        """The address of a PostgreSQL store for other clients. It holds the password: never show it."""
        return self._url.set(drivername="postgresql").render_as_string(hide_password=False)

    def _engine(self) -> AsyncEngine:
        loop = asyncio.get_running_loop()
        if self.dialect == "sqlite":
            if (held := self._held.get(loop)) and held.holders:
                return held.engine
            if self._shared is None:
                self._shared = self._sqlite_engine()
            return self._shared
        if loop not in self._engines:
            self._engines[loop] = self._postgres_engine()
        return self._engines[loop]

    @property
    def connect_arguments(self) -> dict[str, Any]:
        """What psycopg takes to connect to a PostgreSQL store. It holds the password: never show it."""
        _, arguments = self._url.get_dialect()().create_connect_args(self._url)
        return {**arguments, **self._limits()}

    def _limits(self) -> dict[str, Any]:
        limit_ms = int(self._connections.statement_timeout_s * 1000)
        options = f"{self._url.query.get('options', '')} -c statement_timeout={limit_ms}".strip()
        return {"connect_timeout": 10, "options": options}

    def _postgres_engine(self) -> AsyncEngine:
        return create_async_engine(
            self._url,
            pool_pre_ping=True,
            pool_size=self._connections.pool_size,
            max_overflow=self._connections.pool_size,
            connect_args=self._limits(),
            isolation_level=USUAL,
        )

    def _sqlite_engine(self, *, is_held: bool = False) -> AsyncEngine:
        if self.path is not None:
            driver.create_private(self.path)
        pool: dict[str, Any] = {"poolclass": StaticPool if self.in_memory else NullPool}
        if is_held:
            pool = {"pool_size": KEPT_OPEN, "max_overflow": -1}
        options = {"timeout": driver.BUSY_TIMEOUT_MS / 1000, "isolation_level": None}
        creator = partial(driver.connect, in_place=is_held)
        engine = create_async_engine(self._url, connect_args={**options, "async_creator_fn": creator}, **pool)
        event.listen(engine.sync_engine, "connect", driver.set_pragmas)
        event.listen(engine.sync_engine, "begin", driver.begin)
        return engine

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keep a SQLite file open meanwhile, and execute short statements in the running loop itself.

        For who writes much, as a batch does: opening the file for each transaction and changing threads for each
        statement costs more than the statements. Writers of this loop queue up here, and not by polling the file.
        """
        if self.path is None:
            yield
            return
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            self._held[loop] = _Held(self._sqlite_engine(is_held=True))
        held = self._held[loop]
        held.holders += 1
        try:
            yield
        finally:
            held.holders -= 1
            if not held.holders:
                await held.engine.dispose()  # the next who holds it finds its statements compiled

    def _queue(self, *, writing: bool) -> AbstractAsyncContextManager[Any]:
        if self.in_memory:
            return self._turn
        held = self._held.get(asyncio.get_running_loop())
        return held.turn if held and held.holders and writing else nullcontext()

    @asynccontextmanager
    async def connection(
        self, *, writing: bool, isolation: str | None = None, lasting: bool = True
    ) -> AsyncIterator[AsyncConnection]:
        """Open one transaction on a plain connection. Raises `StoreUnreachable` where the database does not answer.

        `isolation` is PostgreSQL's level, by default one snapshot for the whole transaction. `lasting` as for `write`.
        """
        options: dict[str, Any] = {"afterword_writing": writing, "afterword_lasting": lasting}
        if self.dialect == "postgresql":
            options["isolation_level"] = isolation or USUAL
        try:
            async with self._queue(writing=writing), self._engine().connect() as plain:
                connection = await plain.execution_options(**options)
                async with connection.begin():
                    if not lasting and self.dialect == "postgresql":
                        await connection.exec_driver_sql("SET LOCAL synchronous_commit TO OFF")
                    yield connection
        except PoolTimeout:
            mend = "raise AFTERWORD_STORE__POOL_SIZE"
            raise StoreUnreachable(f"no connection to {self.shown_url} is free; {mend}") from None
        except DatabaseError as error:
            sqlstate = getattr(error.orig, "sqlstate", None)
            if sqlstate in OVERTAKEN or (sqlstate == TAKEN and writing):
                raise Overtaken(f"another process changed the same rows of {self.shown_url} first; try again") from None
            # Its other subclasses are faults of a statement, not of the database.
            if not isinstance(error, OperationalError) and type(error) is not DatabaseError:
                raise
            reason = _reason(error)
            raise StoreUnreachable(f"{self.shown_url} does not answer ({reason}); see `afterword doctor`") from None

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """Open a transaction that only reads: one consistent view."""
        draft = Draft(self._cache)
        async with self.connection(writing=False) as connection, _session(connection, draft) as db:
            yield db
        draft.commit()

    @asynccontextmanager
    async def write(self, *, strict: bool = False, lasting: bool = True) -> AsyncIterator[AsyncSession]:
        """Open a transaction that writes: committed at the end, rolled back on any error.

        Of two that write the same rows one is refused (`Overtaken`). With `strict` so is one of two that read what the
        other writes; on SQLite there is one writer at a time in any case. What is not `lasting` survives the end of
        every process, but until the next that is, it may be lost where the machine loses power: nobody waits for the
        disk.
        """
        draft = Draft(self._cache)
        level = STRICT if strict else None
        opened = self.connection(writing=True, isolation=level, lasting=lasting)
        async with opened as connection, _session(connection, draft) as db:
            yield db
            await db.flush()
        draft.commit()

    async def written(
        self, work: Callable[[AsyncSession], Awaitable[T]], *, strict: bool = False, lasting: bool = True
    ) -> T:
        """Do the work in a transaction that writes, again from its beginning where another process was faster.

        `strict` and `lasting` as for `write`. Raises `Overtaken` after 20 tries.
        """
        for attempt in range(TRIES - 1):
            try:
                async with self.write(strict=strict, lasting=lasting) as db:
                    return await work(db)
            except Overtaken:
                await pause(attempt)
        async with self.write(strict=strict, lasting=lasting) as db:
            return await work(db)

    async def compact(self) -> bool:
        """Write the database anew, so that nothing of what was deleted is left in its files; return whether that is so.

        It is not where other processes are in the middle of something; then it can be tried again.
        """
        if self.path is not None:
            return await asyncio.to_thread(compaction.compact_file, self.path)
        if self.in_memory:
            return True
        try:
            async with self._engine().connect() as plain:
                await compaction.vacuum(await plain.execution_options(isolation_level="AUTOCOMMIT"))
        except DatabaseError as error:
            shown = f"{self.shown_url} does not answer ({_reason(error)})"
            raise StoreUnreachable(f"{shown}; see `afterword doctor`") from None
        return True

    @telemetry.staged(telemetry.Stage.MIGRATE)
    async def migrate(self) -> tuple[str | None, str]:
        """Bring the tables up to date; return the versions before and after.

        Raises `StoreTooNew` where a newer afterword wrote the store.
        """
        # Alembic keeps the migration that it runs in globals of the process; others wait, whatever loop they run in.
        while not _MIGRATING.acquire(blocking=False):  # noqa: ASYNC110 - an event belongs to one loop
            await asyncio.sleep(_MIGRATING_PAUSE_S)
        try:
            # At a stricter level whoever waited for another deployer would still see the tables as they were before.
            async with self.connection(writing=True, isolation=MIGRATING) as connection:
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
    return AsyncSession(bind=connection, info={Draft: draft, AsyncConnection: connection})


async def pause(attempt: int) -> None:
    """Wait before another try, longer each time: whoever collides would collide again in step, chance parts them."""
    await asyncio.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 5)))


async def open_store(
    url: str | None = None,
    *,
    create: bool = True,
    privacy: Privacy | None = None,
    connections: Connections | None = None,
) -> Store:
    """Return a store whose tables are there and up to date.

    `url` defaults to `AFTERWORD_STORE__URL`, else `sqlite:///afterword.db`. SQLite stores are made (unless `create` is
    False) and brought up to date here; a PostgreSQL store waits for `afterword migrate`. `privacy` and `connections`
    as for `Store`. Raises `StoreMissing`, `StoreUnreachable`, `StoreOutdated` or `StoreTooNew`.
    """
    named = url or os.environ.get("AFTERWORD_STORE__URL") or DEFAULT_URL
    store = Store(named, privacy=privacy, connections=connections)
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


def _reason(error: DBAPIError) -> str:
    return type(error.orig).__name__ if error.orig is not None else type(error).__name__
