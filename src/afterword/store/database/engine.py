"""The store: opening it, transactions in its own threads, and tables brought up to date.

`Store.read` and `Store.write` are the ways to the database. Each runs a plain function on a SQLModel `Session` in one
transaction, in a thread of the store's own. One store may be used from several event loops and threads.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, nullcontext
from datetime import UTC, tzinfo
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DatabaseError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlmodel import Session
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from afterword import telemetry
from afterword.errors import ArgumentInvalid, Overtaken, ScopeMoved, StoreMissing, StoreOutdated, StoreUnreachable
from afterword.facts.scopes import Scope
from afterword.privacy.policy import Privacy
from afterword.store import migrations
from afterword.store.database import compaction, sqlite_files
from afterword.store.database.cache import Cache, Draft
from afterword.store.database.cancellation import current_ticket, interrupter, run_in_thread
from afterword.store.database.driver_errors import UNSTORABLE, store_error_of, unreachable
from afterword.store.database.statements import share_statements
from afterword.store.database.urls import DEFAULT_URL, shown_url, store_url
from afterword.store.limits import StoreLimits
from afterword.text_caches import clear_text_caches

T = TypeVar("T")

_log = logging.getLogger(__name__)
_MIGRATING = threading.Lock()

_REPEATED = Retrying(
    # What a caller has read before the transaction does not become true again.
    retry=retry_if_exception(lambda error: isinstance(error, Overtaken) and not isinstance(error, ScopeMoved)),
    stop=stop_after_attempt(20),
    # Who collides would collide again in step; chance parts them.
    wait=wait_random_exponential(multiplier=0.01, max=0.32),
    sleep=lambda pause_s: current_ticket().wait(pause_s),
    reraise=True,
)
"""Repeats a transaction that another process overtakes. It keeps its state for each thread, so one serves them all."""
READERS = 4
"""How many threads read a SQLite file at once; one more writes."""
STRICT, USUAL, MIGRATING = "SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"
"""Levels of PostgreSQL. Writers of one scope meet at its row, which each of them writes, so one snapshot is enough;
where sums over many rows decide, it is not. Measured on 96 sessions of 16 scopes, 8 at once: 300 refused transactions
and a tenth of the sessions failed with all of them serializable, none with one snapshot, in a third of the time."""


class Store:
    """An opened store. Nothing is connected before the first transaction.

    Use `open_store` to get one whose tables are there. Close it with `close()`, or use it as an async context manager.
    `privacy` says what is kept out of it: by default every secret, and what was said off the record.
    `zone` is the time zone of sources without offsets, unless their scope names one.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        privacy: Privacy | None = None,
        limits: StoreLimits | None = None,
        zone: tzinfo = UTC,
    ) -> None:
        self.privacy: Privacy = privacy or Privacy()
        self.zone = zone
        self.limits: StoreLimits = limits or StoreLimits()
        self._url = store_url(url)
        self.shown_url: str = shown_url(url)
        self._cache = Cache()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._opened: Engine | None = None
        self._identity: tuple[int, int] | None = None
        self._threads: dict[str, ThreadPoolExecutor] = {}
        # A database in memory is one connection, and a connection has one transaction at a time.
        self._turn = threading.Lock()
        self._closing: list[Callable[[], None]] = []
        self._forgetting: list[Callable[[Scope], None]] = []

    def __repr__(self) -> str:
        return f"Store({self.shown_url!r})"

    @cached_property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._url.get_backend_name()

    @property
    def in_memory(self) -> bool:
        """Whether it is a SQLite database in memory, which has one connection for all."""
        return self.dialect == "sqlite" and self.path is None

    @cached_property
    def path(self) -> Path | None:
        """The SQLite file, None in memory and on PostgreSQL."""
        name = self._url.database
        return Path(name) if self.dialect == "sqlite" and name and name != ":memory:" else None

    def is_missing(self) -> bool:
        """Return whether the store is a file that does not exist. Raises `OSError` if that cannot be known."""
        if self.path is None:
            return False
        # `Path.exists` hides every error from Python 3.14 on: a name that is too long would pass for a new store.
        try:
            self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        return False

    @property
    def libpq_url(self) -> str:
        """The address of a PostgreSQL store for other clients. It holds the password: never show it."""
        return self._url.set(drivername="postgresql").render_as_string(hide_password=False)

    async def read(self, work: Callable[[Session], T]) -> T:
        """Return what `work` reads in one transaction: one consistent view.

        `work` runs in a thread of the store and has no other side effect. Raises `StoreUnreachable` where the database
        does not answer.
        """
        return await run_in_thread(self._executor("read"), partial(self._read, work))

    def begin_reading(self, work: Callable[[], T]) -> Future[T]:
        """Begin work in a thread that reads, and return the future of what it returns. Nobody can cancel it."""
        return self._executor("read").submit(work)

    async def write(self, work: Callable[[Session], T], *, strict: bool = False, lasting: bool = True) -> T:
        """Return what `work` returns after its transaction was committed; any error rolls it back.

        `work` runs in a thread of the store, again from its beginning where another process was faster: it has no other
        side effect. Of two transactions that write the same rows one is refused and repeated. With `strict` so is one
        of two that read what the other writes; on SQLite there is one writer at a time in any case. What is not
        `lasting` survives the end of this process, since nobody waits for the disk. Until a lasting one follows, it may
        be lost where the machine loses power or the PostgreSQL server crashes.

        Raises `Overtaken` after 20 tries, and `StoreUnreachable` where the database does not answer. Where the caller
        is cancelled, `cancellation.was_committed` tells of the CancelledError whether the transaction was committed.
        """
        return await run_in_thread(self._executor("write"), partial(self._write, work, strict, lasting))

    def _read(self, work: Callable[[Session], T]) -> T:
        with self.reading() as transaction:
            return work(transaction)

    def _write(self, work: Callable[[Session], T], strict: bool, lasting: bool) -> T:
        result: T = _REPEATED(self._write_once, work, strict, lasting)
        return result

    def _write_once(self, work: Callable[[Session], T], strict: bool, lasting: bool) -> T:
        with self.writing(strict=strict, lasting=lasting) as transaction:
            return work(transaction)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a transaction that only reads, in the calling thread, which waits for the database. Not for event loops:
        they use `read`."""
        draft = Draft(self._cache)
        with self.connecting(writing=False) as connection, _session(connection, draft) as transaction:
            yield transaction
        draft.commit()

    @contextmanager
    def writing(self, *, strict: bool = False, lasting: bool = True) -> Iterator[Session]:
        """Open a transaction that writes, in the calling thread: committed at the end, rolled back on any error.

        Not for event loops: they use `write`. `strict` and `lasting` as for `write`; raises `Overtaken` at once, and
        `StoreTooNew` or `StoreOutdated` if the tables are not those of this program.
        """
        draft = Draft(self._cache)
        opened = self.connecting(writing=True, isolation=STRICT if strict else None, lasting=lasting)
        with opened as connection, _session(connection, draft) as transaction:
            # A newer program may have changed the tables since this process opened the store.
            migrations.check_before_writing(connection)
            yield transaction
            transaction.flush()
        draft.commit()

    @contextmanager
    def connecting(
        self, *, writing: bool, isolation: str | None = None, lasting: bool = True, patient: bool = True
    ) -> Iterator[Connection]:
        """Open one transaction on a plain connection, in the calling thread.

        `isolation` is PostgreSQL's level, by default one snapshot for the whole transaction. `lasting` as for `write`.
        Unless it is `patient` it does not wait for another writer of a SQLite file. Raises `StoreUnreachable` where the
        database does not answer, and `Overtaken` where another was faster.
        """
        choices = {"writing": writing, "lasting": lasting, "patient": patient}
        options: dict[str, Any] = {f"afterword_{name}": choice for name, choice in choices.items()}
        if self.dialect == "postgresql":
            options["isolation_level"] = isolation or USUAL
        ticket = current_ticket()
        try:
            with self._turn if self.in_memory else nullcontext(), self._engine().connect() as plain:
                connection = plain.execution_options(**options)
                ticket.interruptible_by(interrupter(connection))
                try:
                    with connection.begin():
                        if not lasting and self.dialect == "postgresql":
                            connection.exec_driver_sql("SET LOCAL synchronous_commit TO OFF")
                        yield connection
                        ticket.check()
                    ticket.is_committed = True
                finally:
                    ticket.interruptible_by(None)
        except PoolTimeout:
            raise StoreUnreachable(f"{self.shown_url}: no free connection; raise AFTERWORD_STORE__POOL_SIZE") from None
        except DatabaseError as error:
            raise store_error_of(error, self.shown_url, writing=writing) from None
        except sqlite3.OperationalError as error:  # of the lock, which is taken outside of SQLAlchemy
            raise unreachable(error, self.shown_url) from None
        except UnicodeEncodeError:
            raise ArgumentInvalid(UNSTORABLE) from None

    async def compact(self) -> bool:
        """Rewrite the database, so that nothing that was deleted is left in its files. Return whether that succeeded.

        It may fail while other processes use the database; then it can be tried again.
        """
        return await run_in_thread(self._executor("write"), self._compact)

    def _compact(self) -> bool:
        if self.path is not None:
            return compaction.compact_file(self.path)
        if self.in_memory:
            return True
        try:
            with self._engine().connect() as plain:
                compaction.vacuum(plain.execution_options(isolation_level="AUTOCOMMIT"))
        except DatabaseError as error:
            raise unreachable(error.orig or error, self.shown_url) from None
        return True

    @telemetry.staged(telemetry.Stage.MIGRATE)
    async def migrate(self) -> tuple[str | None, str]:
        """Bring the tables up to date; return the versions before and after.

        Raises `StoreTooNew` where a newer afterword wrote the store.
        """
        return await run_in_thread(self._executor("write"), self._migrate)

    def _migrate(self) -> tuple[str | None, str]:
        # Alembic keeps the migration that it runs in globals of the process. At a stricter level whoever waited for
        # another deployer would still see the tables as they were before.
        with _MIGRATING, self.connecting(writing=True, isolation=MIGRATING) as connection:
            return migrations.upgrade(connection)

    async def check(self) -> None:
        """Raise `StoreOutdated` or `StoreTooNew` where the tables are not those of this program."""
        await run_in_thread(self._executor("read"), self._check)

    def _check(self) -> None:
        with self.connecting(writing=False) as connection:
            migrations.check_version(connection)

    def on_close(self, work: Callable[[], None]) -> None:
        """Register a function that is called whenever the store is closed. A store may be opened again."""
        self._closing.append(work)

    def on_forgetting(self, work: Callable[[Scope], None]) -> None:
        """Register a function that is called with each scope of which this process has forgotten something."""
        self._forgetting.append(work)

    def drop_forgotten(self, scope: Scope) -> None:
        """Drop what this process caches of a scope of which something was forgotten, and its caches of texts."""
        for work in self._forgetting:
            work(scope)
        clear_text_caches()

    async def close(self) -> None:
        """Wait for the transactions that are running, then close every connection and thread.

        The store is opened again at its next use.
        """
        for work in self._closing:
            work()
        with self._lock:
            engine, self._opened, self._cache = self._opened, None, Cache()
            threads, self._threads = self._threads, {}
        with ThreadPoolExecutor(1) as waiter:
            await run_in_thread(waiter, partial(_shut_down, threads, engine))

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _engine(self) -> Engine:
        """Return the engine of the file as it is now, in this process."""
        with self._lock:
            self._forget_parent_process()
            if self._opened is not None and sqlite_files.file_identity(self.path) != self._identity:
                # The file is another one by now.
                self._opened.dispose()
                self._opened, self._cache = None, Cache()
            if self._opened is None:
                self._opened = (
                    sqlite_files.make_engine(self._url, self.path, READERS + 1)
                    if self.dialect == "sqlite"
                    else self._postgres_engine()
                )
                self._identity = sqlite_files.file_identity(self.path)
            return self._opened

    def _executor(self, purpose: str) -> ThreadPoolExecutor:
        with self._lock:
            self._forget_parent_process()
            if self.in_memory:
                purpose = "write"
            if purpose not in self._threads:
                count = READERS if purpose == "read" else 1
                if self.dialect == "postgresql":
                    count = self.limits.pool_size
                self._threads[purpose] = ThreadPoolExecutor(count, f"afterword-{purpose}")
            return self._threads[purpose]

    def _forget_parent_process(self) -> None:
        """Use nothing of the process that this one was forked from: its threads are not here, its connections are its
        own, and must not even be closed here."""
        if self._process != os.getpid():
            if self._opened is not None:
                self._opened.dispose(close=False)
            self._process, self._opened, self._threads, self._cache = os.getpid(), None, {}, Cache()

    def _postgres_engine(self) -> Engine:
        size, limit_ms = self.limits.pool_size, int(self.limits.statement_timeout_s * 1000)
        options = f"{self._url.query.get('options', '')} -c statement_timeout={limit_ms}".strip()
        pool: dict[str, Any] = {"pool_pre_ping": True, "pool_size": size, "max_overflow": size}
        limits = {"connect_timeout": 10, "options": options}
        return share_statements(create_engine(self._url, connect_args=limits, isolation_level=USUAL, **pool))


def _session(connection: Connection, draft: Draft) -> Session:
    return Session(bind=connection, info={Draft: draft, Connection: connection})


def _shut_down(threads: dict[str, ThreadPoolExecutor], engine: Engine | None) -> None:
    for executor in threads.values():
        executor.shutdown()
    if engine is not None:
        engine.dispose()


async def open_store(
    url: str | None = None,
    *,
    create: bool = True,
    privacy: Privacy | None = None,
    limits: StoreLimits | None = None,
    zone: tzinfo = UTC,
) -> Store:
    """Return a store whose tables are there and up to date.

    `url` defaults to `AFTERWORD_STORE__URL`, else `sqlite:///afterword.db`. SQLite stores are made (unless `create` is
    False) and brought up to date here; a PostgreSQL store waits for `afterword migrate`. `privacy`, `limits` and
    `zone` as for `Store`. Raises `StoreMissing`, `StoreUnreachable`, `StoreOutdated` or `StoreTooNew`.
    """
    named = url or os.environ.get("AFTERWORD_STORE__URL") or DEFAULT_URL
    store = Store(named, privacy=privacy, limits=limits, zone=zone)
    if not create and store.is_missing():
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
            # Imported only here: it stands above this module, and few programs ever need it.
            from afterword.store.upgrades import derive_outdated_scopes, merge_scope_forms

            for scope in await merge_scope_forms(store):
                _log.warning("the upgrade merged the scope %a into the same name in NFC", str(scope))
            for scope, changed in (await derive_outdated_scopes(store)).items():
                _log.warning("the upgrade changed %d facts of scope %s", len(changed), scope)
        on_failure.pop_all()
    return store
