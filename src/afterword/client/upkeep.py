"""The upkeep of a whole store: retention, exports and imports, backups, migrations, and work in the background."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO, TypeVar

from sqlmodel import Session

from afterword.client.arguments import scope_of
from afterword.client.background import defer, migrate, open_schedule, run_worker
from afterword.client.forgetting import retain
from afterword.client.processing import ProcessingOptions
from afterword.client.queries import audit_page
from afterword.client.resources import Resources
from afterword.client.session_processing.background_processor import BackgroundProcessor, processor_of
from afterword.client.store_results import AuditPage, BackupFile, ExportedFile, TombstoneReplay
from afterword.errors import ArgumentInvalid, NotFound, StoreInvalid
from afterword.facts.fact import FactChange
from afterword.facts.scopes import Scope
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import JobReport, JobResult
from afterword.store import scope_rows
from afterword.store.database.compaction import copy_file
from afterword.store.forgetting import tombstone_replay
from afterword.store.forgetting.erasure import Receipt
from afterword.store.jobs import JobState, read_jobs
from afterword.store.transfer.exports import export_scopes
from afterword.store.transfer.imports import ImportResult, import_file
from afterword.store.upgrades import derive_outdated_scopes, merge_scope_forms

T = TypeVar("T")

SELDOM = (50_000, 20, 100)
"""How seldom Python looks for reference cycles during an import: rows by the hundred thousand hold none, and looking
took two fifths of the time."""


class StoreUpkeep:
    """What those who run a store do to it. Use it through `Afterword`."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._resources.shown_url!r})"

    @property
    def resources(self) -> Resources:
        """What is opened here; for modules of this package."""
        return self._resources

    def processor(self, options: ProcessingOptions | None = None) -> BackgroundProcessor:
        """Return what processes recorded sessions in the background, for `process=` of recorders and providers.

        Without `options` the work is done in a process of its own where that is possible. `finish` of the result waits
        for the end; `close` ends the work, and leaves the rest queued. There is one for each `Afterword`, with the
        options of the first call.
        """
        return processor_of(self._resources, options)

    async def _read(self, work: Callable[[Session], T]) -> T:
        return await self._resources.read(work)

    async def audit(
        self,
        *,
        tenant: str | None = None,
        scope: Scope | str | None = None,
        key_id: str | None = None,
        limit: int | None = 100,
        after: str | None = None,
    ) -> AuditPage:
        """Return who asked for what and when, newest first: all, or of a tenant, a scope or a key. Without words.

        Only what changes or exports something is listed. Raises `ArgumentInvalid`.
        """
        owner = None if scope is None else scope_of(scope)
        return await self._read(audit_page(tenant, owner, key_id, limit, after))

    async def apply_retention(self, *, preview: bool = False) -> tuple[Receipt, ...]:
        """Forget in every scope what is older than the settings in `[retention]` allow, and return how much.

        `run_due_jobs` and `schedule` do so by themselves. With `preview` nothing is forgotten.
        """
        scopes = await self._read(scope_rows.read_scopes)
        return tuple(await retain(self._resources, scopes, is_preview=preview))

    async def clean_files(self) -> bool:
        """Rewrite the database, so that its files hold nothing that was erased; return whether that succeeded.

        It may fail while other processes use the database: then try again.
        """
        return await (await self._resources.store()).compact()

    async def write_tombstones(self, path: str | Path, *, scope: Scope | str | None = None) -> ExportedFile:
        """Write the tombstones to a new file, to be replayed after a backup is restored.

        Raises `FileInvalid` if it exists.
        """
        scopes = None if scope is None else [scope_of(scope)]
        count = await tombstone_replay.write_tombstones(await self._resources.store(), Path(path), scopes)
        return ExportedFile(Path(path), count)

    async def replay_tombstones(self, path: str | Path) -> TombstoneReplay:
        """Forget again what the tombstones in a file of `write_tombstones`, or of `export`, stand for.

        Raises `NotFound` and `FileInvalid`.
        """
        if not await asyncio.to_thread(Path(path).is_file):
            raise NotFound(f"there is no file {path}; `afterword forget --tombstones FILE` writes one")
        store = await self._resources.store()
        count, erased = await tombstone_replay.replay_tombstones(store, Path(path), at=self._resources.now())
        is_clean = await store.compact()
        await self._resources.refresh_vectors(None)
        return TombstoneReplay(count, erased, is_clean)

    async def export(self, path: str | Path, *, even_asked: bool = False, file: TextIO | None = None) -> ExportedFile:
        """Write the whole store, as of one moment; arguments and errors as `ScopeMemory.export`."""
        store = await self._resources.store()
        return ExportedFile(Path(path), await export_scopes(store, Path(path), even_asked=even_asked, file=file))

    async def import_(self, path: str | Path) -> ImportResult:
        """Take in a file of `export`, and return what came of it. Importing again changes nothing.

        What was forgotten here stays so. What the file names as forgotten and is here still stays, and is counted as
        `still_here`: `replay_tombstones` with the same file erases it. Raises `ArgumentInvalid` if the file is not
        there, and `FileInvalid` if it is of a newer version, or damaged.
        """
        if not await asyncio.to_thread(Path(path).is_file):
            raise ArgumentInvalid(f"there is no file {path}")
        usual = gc.get_threshold()
        gc.set_threshold(*SELDOM)
        try:
            imported = await import_file(await self._resources.store(), Path(path))
        finally:
            gc.set_threshold(*usual)
        await self._resources.refresh_vectors(None)
        return imported

    async def backup(self, path: str | Path) -> BackupFile:
        """Copy the SQLite store to a new file while it is in use. Raises `StoreInvalid` for any other store."""
        store, copy = await self._resources.store(), Path(path)
        if store.path is None:
            raise StoreInvalid(
                f"{store.shown_url} is no SQLite file: use `pg_dump --format=custom` for PostgreSQL, "
                "or `afterword export` for a file that any store takes in"
            )
        await asyncio.to_thread(copy_file, store.path, copy)
        return BackupFile(copy, (await asyncio.to_thread(copy.stat)).st_size)

    async def migrate(self) -> tuple[str | None, str]:
        """Bring the tables up to date, and return the versions before and after. Raises `StoreTooNew`."""
        return await migrate(self._resources)

    async def merge_scope_forms(self) -> tuple[Scope, ...]:
        """Merge the scopes whose names an older afterword stored in another form than NFC; return those scopes.

        Run it after `migrate`. A SQLite store that is upgraded when it is opened does this itself.
        """
        return await merge_scope_forms(await self._resources.store())

    async def derive_facts(self) -> Mapping[Scope, tuple[FactChange, ...]]:
        """Derive the facts again that the rules of an older afterword derived; return what changed in each scope.

        Run it after `migrate`. A SQLite store that is upgraded when it is opened does this itself.
        """
        return await derive_outdated_scopes(await self._resources.store())

    async def jobs(self) -> tuple[JobState, ...]:
        """Return the state of every periodic job that was ever begun."""
        return tuple(await self._read(read_jobs))

    async def run_due_jobs(self, *, halt: Halt | None = None) -> tuple[JobReport, ...]:
        """Do the periodic jobs that are due now, and return what came of each; loads APScheduler."""
        async with open_schedule(self._resources, halt or Halt(), lambda _: None) as schedule:
            return await schedule.run_once()

    async def schedule(
        self,
        *,
        halt: Halt | None = None,
        on_begin: Callable[[str], None] = lambda _: None,
        on_end: Callable[[JobReport], None] = lambda _: None,
    ) -> None:
        """Do the periodic jobs when they are due, until `halt.stop` is called; loads APScheduler.

        Several processes share the work. `on_begin` is told the store, `on_end` what came of each job.
        """
        async with open_schedule(self._resources, halt or Halt(), on_end) as schedule:
            on_begin(schedule.store.shown_url)
            await schedule.run()

    async def defer(self) -> int:
        """Put the recorded sessions that wait into the queue of the workers, and return how many.

        Raises `ArgumentInvalid` unless the store is PostgreSQL and `afterword[workers]` is installed.
        """
        return await defer(self._resources)

    async def run_worker(
        self, *, concurrency: int = 4, once: bool = False, on_begin: Callable[[str], None] = lambda _: None
    ) -> JobResult:
        """Process what is in the queue of the workers, until stopped; with `once` until it is empty.

        Return how many sessions were processed, and why others failed.

        Raises `ArgumentInvalid` as `defer` does.
        """
        if concurrency < 1:
            raise ArgumentInvalid(f"concurrency={concurrency} is too small; give 1 or more")
        return await run_worker(self._resources, concurrency=concurrency, once=once, on_begin=on_begin)
