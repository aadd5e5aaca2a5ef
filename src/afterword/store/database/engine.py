"""The store: opening it, running transactions in its own threads, and bringing its tables up to date.

All access to the database is by `Store.read` and `Store.write`. Each runs a plain function on a SQLModel `Session` in
one transaction, in a thread of the store. One store may be used from several event loops and threads.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, nullcontext
from datetime import UTC, tzinfo
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlmodel import Session

from afterword import telemetry
from afterword.errors import StoreMissing, StoreOutdated
from afterword.facts.scopes import Scope
from afterword.privacy.policy import Privacy
from afterword.store import migrations
from afterword.store.database import compaction, sqlite_files
from afterword.store.database.cache import KnowledgeCache, UncommittedCache
from afterword.store.database.cancellation import current_transaction_handle, interruptible_connection, run_in_thread
from afterword.store.database.driver_errors import translate_driver_errors, unreachable_error
from afterword.store.database.overtaking import LOCK_OUT_WRITERS, retry_if_overtaken
from afterword.store.database.statements import share_compiled_statements
from afterword.store.database.urls import DEFAULT_URL, check_encoding, postgres_url, shown_url, store_url
from afterword.store.limits import StoreLimits
from afterword.text_caches import clear_text_caches

T = TypeVar("T")

_log = logging.getLogger(__name__)
_MIGRATING = threading.Lock()

READERS = 4
"""How many threads read a SQLite file at once; one more writes."""
STRICT, USUAL, MIGRATING = "SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"
"""Isolation levels of PostgreSQL. Every writer of a scope updates the row of the scope, so REPEATABLE READ detects two
writers of one scope. Transactions that decide by sums over many rows need SERIALIZABLE. Measured on 96 sessions of 16
scopes, 8 at once: with SERIALIZABLE for all, 300 transactions were refused and a tenth of the sessions failed; with
REPEATABLE READ none, in a third of the time."""


class Store:
    """An opened store. Nothing is connected before the first transaction.

    Use `open_store` to get a store whose tables exist. Close it with `close()`, or use it as an async context manager.
    `privacy` says what is never stored: by default secrets, and what was said off the record. `zone` is the time zone
    of times without an offset, unless their scope has a zone of its own.
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
        self._cache = KnowledgeCache()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._opened: Engine | None = None
        self._file_identity: tuple[int, int] | None = None
        self._threads: dict[str, ThreadPoolExecutor] = {}
        # A database in memory has only one connection, and a connection has one transaction at a time.
        self._memory_lock = threading.Lock()
        self._close_callbacks: list[Callable[[], None]] = []
        self._forget_callbacks: list[Callable[[Scope], None]] = []

    def __repr__(self) -> str:
        return f"Store({self.shown_url!r})"

    @cached_property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._url.get_backend_name()

    @property
    def is_in_memory(self) -> bool:
        """Whether the store is a SQLite database in memory, which has a single connection."""
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
        # From Python 3.14 on, `Path.exists` returns False on any error, for example for a name that is too long.
        try:
            self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        return False

    @property
    def libpq_address(self) -> str:
        """The address of a PostgreSQL store for other clients. It holds the password: never show it."""
        from psycopg.conninfo import make_conninfo

        _, arguments = self._url.get_dialect()().create_connect_args(postgres_url(self._url))
        return make_conninfo(**arguments)

    async def read(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a transaction that only reads, on one consistent snapshot, and return its result.

        `work` runs in a thread of the store, and must have no side effects. Raises `StoreUnreachable` if the database
        does not answer.
        """
        return await run_in_thread(self._executor("read"), partial(self._read, work))

    def begin_in_reader_thread(self, work: Callable[[], T]) -> Future[T]:
        """Begin `work` in a thread for readers, and return the future of its result. The work cannot be cancelled."""
        return self._executor("read").submit(work)

    async def write(self, work: Callable[[Session], T], *, strict: bool = False, lasting: bool = True) -> T:
        """Run `work` in a transaction that writes, and return its result after the commit. Any error rolls it back.

        `work` runs in a thread of the store, and again if another process was faster, so it must have no other side
        effects. If two transactions write the same rows, one of them is rolled back and repeated. With `strict` this
        also happens if one reads what the other writes. (On SQLite only one transaction writes at a time.) Unless it is
        `lasting`, a commit does not wait for the disk: it survives a crash of this process, but until the next lasting
        commit it may be lost if the machine loses power or the PostgreSQL server crashes.

        Raises `Overtaken` after 20 tries, and `StoreUnreachable` if the database does not answer. If the caller is
        cancelled, `cancellation.was_committed` tells from the CancelledError whether the transaction was committed.
        """
        return await run_in_thread(self._executor("write"), partial(self._write, work, strict, lasting))

    def _read(self, work: Callable[[Session], T]) -> T:
        with self.reading() as transaction:
            return work(transaction)

    def _write(self, work: Callable[[Session], T], strict: bool, lasting: bool) -> T:
        def write_once(alone: bool) -> T:
            with self.writing(strict=strict, lasting=lasting, alone=alone) as transaction:
                return work(transaction)

        return retry_if_overtaken(write_once)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a transaction that only reads, in the calling thread. It blocks, so code in event loops uses `read`."""
        cache = UncommittedCache(self._cache)
        with self.connecting(writing=False) as connection, _session(connection, cache) as transaction:
            yield transaction
        cache.commit()

    @contextmanager
    def writing(self, *, strict: bool = False, lasting: bool = True, alone: bool = False) -> Iterator[Session]:
        """Open a transaction that writes, in the calling thread. It is committed at the end, and rolled back on errors.

        It blocks, so code in event loops uses `write`, which explains `strict` and `lasting`. Raises `Overtaken` at the
        first conflict, and `StoreTooNew` or `StoreOutdated` if the tables have another version than this program. With
        `alone` no other transaction writes to PostgreSQL meanwhile; it waits half a second for those that do.
        """
        cache = UncommittedCache(self._cache)
        opened = self.connecting(writing=True, isolation=STRICT if strict else None, lasting=lasting)
        with opened as connection, _session(connection, cache) as transaction:
            if alone and self.dialect == "postgresql":
                connection.exec_driver_sql(LOCK_OUT_WRITERS)
            # A newer program may have changed the tables since this process opened the store.
            migrations.check_and_lock_version(connection)
            yield transaction
            transaction.flush()
        cache.commit()

    @contextmanager
    def connecting(
        self, *, writing: bool, isolation: str | None = None, lasting: bool = True, patient: bool = True
    ) -> Iterator[Connection]:
        """Open one transaction on a plain connection, in the calling thread.

        `isolation` is the isolation level on PostgreSQL, by default REPEATABLE READ. `lasting` is explained at `write`.
        With `patient` it waits for another writer of a SQLite file, otherwise it fails at once. Raises
        `StoreUnreachable` if the database does not answer, and `Overtaken` if another transaction was faster.
        """
        choices = {"writing": writing, "lasting": lasting, "patient": patient}
        options: dict[str, Any] = {f"afterword_{name}": choice for name, choice in choices.items()}
        if self.dialect == "postgresql":
            options["isolation_level"] = isolation or USUAL
        handle = current_transaction_handle()
        turn = self._memory_lock if self.is_in_memory else nullcontext()
        with translate_driver_errors(self.shown_url, writing=writing), turn, self._engine().connect() as plain:
            connection = plain.execution_options(**options)
            with interruptible_connection(connection, handle), connection.begin():
                if not lasting and self.dialect == "postgresql":
                    connection.exec_driver_sql("SET LOCAL synchronous_commit TO OFF")
                yield connection
                handle.check_not_cancelled()
            handle.is_committed = True

    async def compact(self) -> bool:
        """Rewrite the database, so that its files hold nothing that was deleted; return whether that succeeded.

        It may fail while other processes use the database. Then it can be tried again. `compaction.vacuum_postgres`
        explains what is done on PostgreSQL.
        """
        return await run_in_thread(self._executor("write"), self._compact)

    def _compact(self) -> bool:
        if self.path is not None:
            return compaction.compact_file(self.path)
        if self.is_in_memory:
            return True
        try:
            with self._engine().connect() as plain:
                return compaction.vacuum_postgres(plain.execution_options(isolation_level="AUTOCOMMIT"))
        except DatabaseError as error:
            raise unreachable_error(error.orig or error, self.shown_url) from None

    @telemetry.staged(telemetry.Stage.MIGRATE)
    async def migrate(self) -> tuple[str | None, str]:
        """Bring the tables up to date; return the versions before and after.

        Raises `StoreTooNew` if a newer afterword wrote the store.
        """
        return await run_in_thread(self._executor("write"), self._migrate)

    def _migrate(self) -> tuple[str | None, str]:
        # Alembic keeps the running migration in global variables, so only one thread migrates at a time. At a stricter
        # isolation level, a process that waited for another one to migrate would still see the old tables.
        with _MIGRATING, self.connecting(writing=True, isolation=MIGRATING) as connection:
            return migrations.upgrade(connection)

    async def check(self, *, writing: bool = False) -> None:
        """Raise `StoreOutdated` or `StoreTooNew` if the tables have another version than this program.

        With `writing`, raise `StoreUnreachable` if PostgreSQL lets nobody write, for example in recovery.
        """
        await run_in_thread(self._executor("read"), partial(self._check, writing))

    def _check(self, writing: bool) -> None:
        with self.connecting(writing=False) as connection:
            migrations.check_version(connection)
            if writing:
                migrations.check_and_lock_version(connection)

    def on_close(self, work: Callable[[], None]) -> None:
        """Register a function that is called whenever the store is closed. A store may be opened again."""
        self._close_callbacks.append(work)

    def on_forgetting(self, work: Callable[[Scope], None]) -> None:
        """Register a function that is called with a scope whenever this process has forgotten something of it."""
        self._forget_callbacks.append(work)

    def drop_caches_of(self, scope: Scope) -> None:
        """Drop what this process caches of a scope, and all caches of texts, after something of it was forgotten."""
        for work in self._forget_callbacks:
            work(scope)
        clear_text_caches()

    async def close(self) -> None:
        """Wait for the transactions that are running, then close every connection and thread.

        The store is opened again at its next use.
        """
        for work in self._close_callbacks:
            work()
        with self._lock:
            engine, self._opened, self._cache = self._opened, None, KnowledgeCache()
            threads, self._threads = self._threads, {}
        with ThreadPoolExecutor(1) as waiter:
            await run_in_thread(waiter, partial(_shut_down, threads, engine))

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _engine(self) -> Engine:
        """Return the engine. It is made anew at its first use, in a forked process, or if the file was replaced."""
        with self._lock:
            self._drop_parent_state()
            if self._opened is not None and sqlite_files.file_identity(self.path) != self._file_identity:
                # Another file has taken the place of the opened file.
                self._opened.dispose()
                self._opened, self._cache = None, KnowledgeCache()
            if self._opened is None:
                self._opened = (
                    sqlite_files.make_engine(self._url, self.path, READERS + 1)
                    if self.dialect == "sqlite"
                    else self._postgres_engine()
                )
                self._file_identity = sqlite_files.file_identity(self.path)
            return self._opened

    def _executor(self, purpose: str) -> ThreadPoolExecutor:
        with self._lock:
            self._drop_parent_state()
            if self.is_in_memory:
                purpose = "write"
            if purpose not in self._threads:
                count = READERS if purpose == "read" else 1
                if self.dialect == "postgresql":
                    count = self.limits.pool_size
                self._threads[purpose] = ThreadPoolExecutor(count, f"afterword-{purpose}")
            return self._threads[purpose]

    def _drop_parent_state(self) -> None:
        """Drop what was inherited from a parent process by forking. The parent's threads do not run here, and its
        connections must be neither used nor closed here."""
        if self._process != os.getpid():
            if self._opened is not None:
                self._opened.dispose(close=False)
            self._process, self._opened, self._threads, self._cache = os.getpid(), None, {}, KnowledgeCache()

    def _postgres_engine(self) -> Engine:
        size, limit_ms = self.limits.pool_size, int(self.limits.statement_timeout_s * 1000)
        url = postgres_url(self._url, statement_timeout=limit_ms)
        pool: dict[str, Any] = {"pool_pre_ping": True, "pool_size": size, "max_overflow": size}
        engine = create_engine(url, connect_args={"connect_timeout": 10}, isolation_level=USUAL, **pool)
        event.listen(engine, "connect", check_encoding)
        return share_compiled_statements(engine)


def _session(connection: Connection, cache: UncommittedCache) -> Session:
    return Session(bind=connection, info={UncommittedCache: cache, Connection: connection})


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
    """Open a store and return it. Its tables exist and are up to date.

    `url` defaults to `AFTERWORD_STORE__URL`, else `sqlite:///afterword.db`. A SQLite store is created (unless `create`
    is False) and brought up to date here. A PostgreSQL store must be brought up to date by `afterword migrate`.
    `privacy`, `limits` and `zone` are explained at `Store`. Raises `StoreMissing`, `StoreUnreachable`, `StoreOutdated`
    or `StoreTooNew`.
    """
    named = url or os.environ.get("AFTERWORD_STORE__URL") or DEFAULT_URL
    store = Store(named, privacy=privacy, limits=limits, zone=zone)
    if not create and store.is_missing():
        raise StoreMissing(
            f"there is no store at {store.path}; `afterword run` creates it, or name another in AFTERWORD_STORE__URL"
        )
    async with AsyncExitStack() as on_failure:
        on_failure.push_async_callback(store.close)
        try:
            # This check only reads, so it waits for no writer.
            await store.check()
        except StoreOutdated:
            if store.dialect != "sqlite":
                raise
            await _upgrade(store)
        on_failure.pop_all()
    return store


async def _upgrade(store: Store) -> None:
    await store.migrate()
    # Imported only here, because it imports this module, and upgrades are rare.
    from afterword.store.upgrades import derive_facts_of_outdated_scopes, merge_scope_forms

    for scope in await merge_scope_forms(store):
        _log.warning("the upgrade merged the scope %a into the same name in NFC", str(scope))
    for scope, changed in (await derive_facts_of_outdated_scopes(store)).items():
        _log.warning("the upgrade changed %d facts of scope %s", len(changed), scope)
