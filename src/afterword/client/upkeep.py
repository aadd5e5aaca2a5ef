"""Maintenance of a whole store: retention, exports, imports, backups, migrations, and background work."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO, TypeVar

from afterword.client.arguments import scope_of
from afterword.client.background import migrate, open_schedule, run_worker, waiting_sessions_enqueuer
from afterword.client.forgetting import forget_older_than_allowed
from afterword.client.processing import ProcessingOptions
from afterword.client.queries import audit_page_reader
from afterword.client.resources import Resources
from afterword.client.session_processing.background_processor import BackgroundProcessor, existing_or_new_processor
from afterword.client.store_results import AuditPage, BackupFile, ExportedFile, TombstoneReplay
from afterword.client.type_checks import TypeCheckedMethods
from afterword.errors import ArgumentInvalid, NotFound, StoreInvalid
from afterword.facts.fact import FactChange
from afterword.facts.scopes import Scope
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import JobReport, JobResult
from afterword.store import scope_rows
from afterword.store.database.compaction import copy_database_file
from afterword.store.forgetting import tombstone_replay
from afterword.store.forgetting.erasure import Receipt
from afterword.store.jobs import JobState, read_store_wide_jobs
from afterword.store.transfer.exports import export_scopes
from afterword.store.transfer.imports import ImportResult, import_file
from afterword.store.upgrades import derive_facts_of_outdated_scopes, merge_scope_forms

T = TypeVar("T")

IMPORT_GC_THRESHOLDS = (50_000, 20, 100)
"""The thresholds of Python's garbage collector during an import.

Hundreds of thousands of rows contain no reference cycles, and the search for cycles took two fifths of the time.
"""


class StoreUpkeep(TypeCheckedMethods):
    """Maintains a whole store. Use it through `Afterword`."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._resources.shown_url!r})"

    @property
    def resources(self) -> Resources:
        """The opened store and embedder, for other modules of this package."""
        return self._resources

    def processor(self, options: ProcessingOptions | None = None) -> BackgroundProcessor:
        """Return the background processor of sessions. Pass it as `process=` to recorders and providers.

        Without `options` it works in another process where that is possible. Its method `finish` waits until all
        sessions are processed. `close` of this object stops it; the remaining sessions stay queued. Each `Afterword`
        has one processor, with the options of the first call.
        """
        return existing_or_new_processor(self._resources, options)

    async def audit(
        self,
        *,
        tenant: str | None = None,
        scope: Scope | str | None = None,
        key_id: str | None = None,
        limit: int | None = 100,
        after: str | None = None,
    ) -> AuditPage:
        """Return a page of the audit log, newest entry first, filtered by tenant, scope and API key.

        An entry tells which key requested which action and when, but no content. Only requests that change or export
        data are listed. Raises `ArgumentInvalid`.
        """
        owner = None if scope is None else scope_of(scope)
        return await self._resources.read(audit_page_reader(tenant, owner, key_id, limit, after))

    async def apply_retention(self, *, preview: bool = False) -> tuple[Receipt, ...]:
        """Forget in every scope what is older than the settings in `[retention]` allow, and return the receipts.

        `run_due_jobs` and `schedule` do this automatically. With `preview` nothing is forgotten.
        """
        scopes = await self._resources.read(scope_rows.read_scopes)
        return tuple(await forget_older_than_allowed(self._resources, scopes, is_preview=preview))

    async def clean_files(self) -> bool:
        """Rewrite the database so that its files contain nothing that was erased; return whether that succeeded.

        It may fail while other processes use the database. Then call it again later. On PostgreSQL the rows are removed
        from the tables, the indexes and the statistics, and it also fails if the user does not own the tables.
        """
        return await (await self._resources.store()).compact()

    async def write_tombstones(self, path: str | Path, *, scope: Scope | str | None = None) -> ExportedFile:
        """Write the tombstones (hashes of what was forgotten) to a new file, for `replay_tombstones`.

        Replay them after you have restored an older backup. Raises `FileInvalid` if the file exists.
        """
        scopes = None if scope is None else [scope_of(scope)]
        count = await tombstone_replay.write_tombstones(await self._resources.store(), Path(path), scopes)
        return ExportedFile(Path(path), count)

    async def replay_tombstones(self, path: str | Path) -> TombstoneReplay:
        """Erase again what was forgotten before a backup was restored, and return how much was erased.

        The file was written by `write_tombstones` or `export`. Raises `NotFound` and `FileInvalid`.
        """
        if not await asyncio.to_thread(Path(path).is_file):
            raise NotFound(f"there is no file {path}; `afterword forget --tombstones FILE` writes one")
        store = await self._resources.store()
        count, erased = await tombstone_replay.replay_tombstones(store, Path(path), at=self._resources.now())
        is_clean = await store.compact()
        await self._resources.refresh_vectors(None)
        return TombstoneReplay(count, erased, is_clean)

    async def export(self, path: str | Path, *, even_asked: bool = False, file: TextIO | None = None) -> ExportedFile:
        """Write a snapshot of the whole store to a file. Arguments and errors are those of `ScopeMemory.export`."""
        store = await self._resources.store()
        return ExportedFile(Path(path), await export_scopes(store, Path(path), even_asked=even_asked, file=file))

    async def import_(self, path: str | Path) -> ImportResult:
        """Import a file that `export` wrote, and return what was imported. Importing it again changes nothing.

        What was forgotten in this store is not imported. What was forgotten in the other store but exists here is not
        erased, only counted as `still_here`; `replay_tombstones` with the same file erases it. Raises `ArgumentInvalid`
        if the file does not exist, and `FileInvalid` if it is damaged or was written by a newer version.
        """
        if not await asyncio.to_thread(Path(path).is_file):
            raise ArgumentInvalid(f"there is no file {path}")
        usual = gc.get_threshold()
        gc.set_threshold(*IMPORT_GC_THRESHOLDS)
        try:
            imported = await import_file(await self._resources.store(), Path(path))
        finally:
            gc.set_threshold(*usual)
        await self._resources.refresh_vectors(None)
        return imported

    async def backup(self, path: str | Path) -> BackupFile:
        """Copy a SQLite store to a new file while it is in use. Raises `StoreInvalid` for any other store."""
        store, copy = await self._resources.store(), Path(path)
        if store.path is None:
            raise StoreInvalid(
                f"{store.shown_url} is not a SQLite file: use `pg_dump --format=custom` for PostgreSQL, "
                "or `afterword export` for a file that any store can import"
            )
        await asyncio.to_thread(copy_database_file, store.path, copy)
        return BackupFile(copy, (await asyncio.to_thread(copy.stat)).st_size)

    async def migrate(self) -> tuple[str | None, str]:
        """Migrate the tables to the version of this program. Return the versions before and after.

        Raises `StoreTooNew` if a newer version of the program has migrated them already.
        """
        return await migrate(self._resources)

    async def merge_scope_forms(self) -> tuple[Scope, ...]:
        """Merge scopes whose names differ only in their Unicode normal form (older versions did not use NFC).

        Returns the merged scopes. Call it after `migrate`. A SQLite store does this itself when it is opened.
        """
        return await merge_scope_forms(await self._resources.store())

    async def derive_facts(self) -> Mapping[Scope, tuple[FactChange, ...]]:
        """Derive the facts again that an older version has derived by other rules. Return the changes by scope.

        Call it after `migrate`. A SQLite store does this itself when it is opened.
        """
        return await derive_facts_of_outdated_scopes(await self._resources.store())

    async def jobs(self) -> tuple[JobState, ...]:
        """Return the state of every periodic job that has run at least once or is running."""
        return tuple(await self._resources.read(read_store_wide_jobs))

    async def run_due_jobs(self, *, halt: Halt | None = None) -> tuple[JobReport, ...]:
        """Run the periodic jobs that are due now, and return the report of each."""
        async with open_schedule(self._resources, halt or Halt(), lambda _: None) as schedule:
            return await schedule.run_once()

    async def schedule(
        self,
        *,
        halt: Halt | None = None,
        on_begin: Callable[[str], None] = lambda _: None,
        on_end: Callable[[JobReport], None] = lambda _: None,
    ) -> None:
        """Run the periodic jobs whenever they are due, until `halt.stop` is called.

        Several processes may do this and share the jobs. `on_begin` is called with the address of the store, and
        `on_end` with the report of each job.
        """
        async with open_schedule(self._resources, halt or Halt(), on_end) as schedule:
            on_begin(schedule.store.shown_url)
            await schedule.run()

    async def defer(self) -> int:
        """Put the recorded sessions that wait into the queue of the workers, and return their number.

        Raises `ArgumentInvalid` unless the store is PostgreSQL and `afterword[workers]` is installed.
        """
        async with waiting_sessions_enqueuer(await self._resources.store()) as enqueue:
            return await enqueue()

    async def run_worker(
        self, *, concurrency: int = 4, once: bool = False, on_begin: Callable[[str], None] = lambda _: None
    ) -> JobResult:
        """Process the sessions in the queue of the workers until stopped, or with `once` until the queue is empty.

        Returns how many sessions were processed, and why others failed. Raises `ArgumentInvalid` as `defer` does.
        """
        if concurrency < 1:
            raise ArgumentInvalid(f"concurrency={concurrency} is too small; give 1 or more")
        return await run_worker(self._resources, concurrency=concurrency, once=once, on_begin=on_begin)
