"""The whole store, for those who run it, and the way to the memory of one scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from sqlmodel import Session

from afterword.client.arguments import Instant, Several, Source, page, scope_of
from afterword.client.resources import Resources
from afterword.client.results import (
    ConsolidationReport,
    FactOrigin,
    ProcessingReport,
    RunEffect,
    SessionDetails,
    SessionPage,
)
from afterword.client.scope_memory import ScopeMemory
from afterword.client.scope_reading import session_page
from afterword.client.store_results import (
    BackupFile,
    CostEstimate,
    ExportedFile,
    OutdatedSession,
    ScopePage,
    StoreCosts,
    StoreStatus,
    TombstoneReplay,
)
from afterword.errors import ArgumentInvalid, NotFound
from afterword.facts.scopes import Scope
from afterword.settings import Settings
from afterword.store import fact_ids, runs, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting import tombstone_replay
from afterword.store.forgetting.erasure import Receipt
from afterword.store.runs import Run

if TYPE_CHECKING:
    from afterword.client.processing import ProcessingOptions
    from afterword.pipeline.background.halt import Halt
    from afterword.pipeline.background.leases import Ending, Job
    from afterword.store.transfer.imports import ImportResult

T = TypeVar("T")


class Afterword:
    """A store with everything that works on it, from `afterword.open()`.

    It may be used from several event loops, and by any number of tasks at once. Its methods are for those who run the
    store: they see every scope. What belongs to one person or project goes through `user` or `scope`. Every method
    raises `StoreError` if the store does not answer, besides the errors that it names.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def __repr__(self) -> str:
        return f"Afterword({self._resources.shown_url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store and every connection that was opened here. They are opened again at the next use."""
        await self._resources.close()

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self._resources.settings

    async def store(self) -> Store:
        """Return the opened store, for functions that take one, such as `process_session`."""
        return await self._resources.store()

    def user(self, name: str) -> ScopeMemory:
        """Return the memory of a user of the default tenant. Raises `ScopeInvalid` for a name that cannot be used."""
        return ScopeMemory(self._resources, Scope.user(name))

    def scope(self, scope: Scope | str) -> ScopeMemory:
        """Return the memory of a scope, written tenant/kind/id. Raises `ScopeInvalid`."""
        return ScopeMemory(self._resources, scope_of(scope))

    async def _read(self, work: Callable[[Session], T]) -> T:
        return await (await self._resources.store()).read(work)

    async def scopes(self, *, prefix: str = "", limit: int | None = None, after: str | None = None) -> ScopePage:
        """Return the scopes whose id, or whose long form tenant/kind/id, begins with `prefix`."""
        scopes = await self._read(scope_rows.read_scopes)
        fitting = [scope for scope in scopes if scope.id.startswith(prefix) or str(scope).startswith(prefix)]
        shown, next_cursor = page(fitting, str, limit=limit, after=after)
        return ScopePage(tuple(shown), len(fitting), next_cursor)

    async def sessions(
        self,
        *,
        state: Several | None = None,
        session_id: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> SessionPage:
        """Return the sessions of all scopes, oldest first: those of these states, or of this id.

        `state` is one or several of pending, done, failed and "set aside". Raises `ArgumentInvalid`.
        """
        saved = await self._read(lambda transaction: sessions.read_sessions(transaction, session_id=session_id))
        return session_page(saved, state, limit, after)

    async def session(self, session_id: str) -> SessionDetails:
        """Return the one session of this id, as `ScopeMemory.session` does.

        Raises `NotFound`, and `Ambiguous` if several scopes have a session of this id.
        """
        return await self.scope(await self._scope_of_session(session_id)).session(session_id)

    async def history(self, fact_id: str) -> FactOrigin:
        """Return how a fact of any scope came to be, as `ScopeMemory.history` does. Raises `NotFound`."""
        at = self._resources.now()

        def work(transaction: Session) -> Scope:
            for scope in fact_ids.scopes_with_statement(transaction, fact_id):
                try:
                    fact_ids.read_fact(transaction, scope, fact_id, at=at)
                except NotFound:
                    continue
                return scope
            raise NotFound(f"no fact {fact_id!r}; see `afterword facts --all`")

        return await self.scope(await self._read(work)).history(fact_id)

    async def run(self, run_id: int) -> Run:
        """Return a run of any scope. Raises `NotFound`."""
        return await self._read(lambda transaction: runs.read_run(transaction, run_id))

    async def process(
        self,
        source: str | Path | Sequence[str | Path] | None = None,
        *,
        manifest: str | Path | None = None,
        trust_manifest: bool = False,
        session_id: str | None = None,
        options: ProcessingOptions | None = None,
    ) -> ProcessingReport:
        """Make facts of the sessions at paths, which say themselves whose they are, and return what became of each.

        `source` is a folder with a manifest.json, a folder of <user>/<session>.json, or a database, or several of
        them; `manifest` is a manifest whose paths are relative to it. With `session_id` only that one is processed. A
        manifest names files below its own folder only, unless you `trust_manifest`.
        Raises `SourceInvalid`, and `NotFound` if no session has this id.
        """
        from afterword.client.processing import ProcessingOptions, process, select

        path = None if manifest is None else Path(manifest)
        at = self._resources.now()
        selection = select(
            source, scope=None, session_id=session_id, manifest=path, trust_manifest=trust_manifest, at=at
        )
        return await process(self._resources, selection, options or ProcessingOptions())

    async def run_pending(self, *, options: ProcessingOptions | None = None) -> ProcessingReport:
        """Make facts of the sessions that were recorded and wait, and return what became of each.

        A session that failed is tried again after its pause; until then it is reported as `NotDue`.
        """
        from afterword.client.processing import ProcessingOptions, process

        return await process(self._resources, None, options or ProcessingOptions())

    async def estimate(
        self,
        source: Source = None,
        *,
        scope: Scope | str | None = None,
        manifest: str | Path | None = None,
        trust_manifest: bool = False,
        session_id: str | None = None,
        extractor: str | None = None,
    ) -> CostEstimate:
        """Return what processing would take and cost; without a source, of the sessions that wait.

        Nothing is asked or stored, and no store is made. The arguments are those of `process`.
        """
        from afterword.client.processing import estimate_costs, select

        selection = None
        if source is not None or manifest is not None or session_id is not None:
            selection = select(
                source,
                scope=None if scope is None else scope_of(scope),
                session_id=session_id,
                manifest=None if manifest is None else Path(manifest),
                trust_manifest=trust_manifest,
                at=self._resources.now(),
            )
        return await estimate_costs(self._resources, selection, extractor)

    async def reprocess(self, session_id: str, *, options: ProcessingOptions | None = None) -> ProcessingReport:
        """Read the one session of this id again, as `ScopeMemory.reprocess` does.

        Raises `NotFound`, and `Ambiguous` if several scopes have a session of this id.
        """
        scope = await self._scope_of_session(session_id)
        return await self.scope(scope).reprocess(session_id, options=options)

    async def outdated(self, *, extractor: str | None = None) -> tuple[OutdatedSession, ...]:
        """Return the sessions of all scopes that were last read by another extractor, or another version of it."""
        from afterword.client.processing import outdated

        return await outdated(self._resources, None, extractor)

    async def consolidate(self, *, scope: Scope | str | None = None, apply: bool = True) -> ConsolidationReport:
        """Consolidate every scope, or this one, within one budget, as `ScopeMemory.consolidate` does."""
        from afterword.client.processing import consolidate

        scopes = await self._read(scope_rows.read_scopes) if scope is None else [scope_of(scope)]
        return await consolidate(self._resources, scopes, apply=apply)

    async def retry(
        self, session_id: str | None = None, *, scope: Scope | str | None = None
    ) -> tuple[tuple[Scope, str], ...]:
        """Put sessions back that failed or were set aside, and return their scopes and ids: the next run tries them.

        Without `session_id` all of them. Raises `NothingSelected` if no such session failed, and `Ambiguous` if several
        scopes have a failed session of this id.
        """
        from afterword.client.processing import retry_failed

        owner = None if scope is None else scope_of(scope)
        return await retry_failed(await self._resources.store(), session_id, owner)

    async def merge(self, scope: Scope | str, *, into: Scope | str) -> RunEffect:
        """Move everything that is known of a scope into another one, and return the run and the facts that changed.

        The run belongs to `into`: `scope(into).undo(run_id)` moves everything back. A session whose id is taken there
        gets the name of its scope behind its id. What was forgotten in either stays forgotten. What is said to the old
        scope from now on is kept there. Raises `NotFound` if nothing was ever kept for the scope, and `StateConflict`
        if the two are one, or belong to different tenants.
        """
        from afterword.client.merging import merge

        return await merge(self._resources, scope_of(scope), scope_of(into), is_rename=False)

    async def rename(self, scope: Scope | str, to: Scope | str) -> RunEffect:
        """Give a scope another name under which nothing is kept yet; return the run, which `scope(to).undo` takes back.

        Raises as `merge` does, and `StateConflict` if something is kept under the new name.
        """
        from afterword.client.merging import merge

        return await merge(self._resources, scope_of(scope), scope_of(to), is_rename=True)

    async def status(self) -> StoreStatus:
        """Return what the store holds, what waits, and what failed and why."""
        from afterword.client.status import store_status

        return await store_status(self._resources)

    async def costs(self) -> StoreCosts:
        """Return what models cost in the whole store, by scope and by day."""
        from afterword.client.status import store_costs

        return await self._read(store_costs)

    async def preview_forget(self, *, before: Instant | None = None, asked: bool = False) -> tuple[Receipt, ...]:
        """Return what `forget` with the same arguments would erase, in counts, by scope. Nothing is changed."""
        return await self._forget(before, asked, is_preview=True)

    async def forget(self, *, before: Instant | None = None, asked: bool = False) -> tuple[Receipt, ...]:
        """Erase in every scope what was said `before` an instant, or what people `asked` for; return what went.

        A scope in which there is nothing of that kind has no receipt. Raises `ArgumentInvalid`.
        """
        return await self._forget(before, asked, is_preview=False)

    async def _forget(self, before: Instant | None, asked: bool, *, is_preview: bool) -> tuple[Receipt, ...]:
        from afterword.client.forgetting import ForgetTarget, forget

        target = ForgetTarget(before=before, asked=asked)
        scopes = await self._read(scope_rows.read_scopes)
        return tuple(await forget(self._resources, scopes, target, is_preview=is_preview))

    async def apply_retention(self, *, preview: bool = False) -> tuple[Receipt, ...]:
        """Forget in every scope what is older than the settings in `[retention]` allow, and return how much.

        `run_due_jobs` and `schedule` do so by themselves. With `preview` nothing is forgotten.
        """
        from afterword.client.forgetting import retain

        scopes = await self._read(scope_rows.read_scopes)
        return tuple(await retain(self._resources, scopes, is_preview=preview))

    async def clean_files(self) -> bool:
        """Write the database anew, so that its files hold nothing that was erased; return whether that is so.

        It is not so while other processes are in the middle of something: then try again.
        """
        return await (await self._resources.store()).compact()

    async def write_tombstones(self, path: str | Path, *, scope: Scope | str | None = None) -> ExportedFile:
        """Write what keeps things forgotten to a new file, for a restored backup. Raises `FileInvalid` if it exists."""
        scopes = None if scope is None else [scope_of(scope)]
        count = await tombstone_replay.write_tombstones(await self._resources.store(), Path(path), scopes)
        return ExportedFile(Path(path), count)

    async def replay_tombstones(self, path: str | Path) -> TombstoneReplay:
        """Forget again what a file of `write_tombstones` stands for. Raises `NotFound` and `FileInvalid`."""
        from afterword.client.transferring import take_tombstones

        return await take_tombstones(self._resources, Path(path))

    async def export(self, path: str | Path, *, even_asked: bool = False) -> ExportedFile:
        """Write the whole store to a new file of mode 0600, as of one moment; errors as `ScopeMemory.export`."""
        from afterword.client.transferring import write_export

        return await write_export(self._resources, None, Path(path), even_asked=even_asked)

    async def import_(self, path: str | Path) -> ImportResult:
        """Take in a file of `export`, and return what came of it. Importing again changes nothing.

        What was forgotten here stays so. Raises `ArgumentInvalid` if the file is not there, and `FileInvalid` if it is
        of a newer version, or damaged.
        """
        from afterword.client.transferring import import_export

        return await import_export(self._resources, Path(path))

    async def backup(self, path: str | Path) -> BackupFile:
        """Copy the SQLite store to a new file while it is in use. Raises `StoreInvalid` for any other store."""
        from afterword.client.transferring import backup

        return await backup(self._resources, Path(path))

    async def migrate(self) -> tuple[str | None, str]:
        """Bring the tables up to date, and return the versions before and after. Raises `StoreTooNew`."""
        from afterword.client.background import migrate

        return await migrate(self._resources)

    async def run_due_jobs(self, *, halt: Halt | None = None) -> Mapping[str, Ending]:
        """Do the periodic jobs that are due now, and return how each ended; loads APScheduler."""
        from afterword.client.background import open_schedule
        from afterword.pipeline.background.halt import Halt

        async with open_schedule(self._resources, halt or Halt(), lambda *_: None) as schedule:
            return await schedule.run_once()

    async def schedule(
        self,
        *,
        halt: Halt | None = None,
        on_begin: Callable[[str], None] = lambda _: None,
        on_end: Callable[[Job, Ending], None] = lambda *_: None,
    ) -> None:
        """Do the periodic jobs when they are due, until `halt.stop` is called; loads APScheduler.

        Several processes share the work. `on_begin` is told the store, `on_end` how each job ended.
        """
        from afterword.client.background import open_schedule
        from afterword.pipeline.background.halt import Halt

        async with open_schedule(self._resources, halt or Halt(), on_end) as schedule:
            on_begin(schedule.store.shown_url)
            await schedule.run()

    async def defer(self) -> int:
        """Put the recorded sessions that wait into the queue of the workers, and return how many.

        Raises `ArgumentInvalid` unless the store is PostgreSQL and `afterword[workers]` is installed.
        """
        from afterword.client.background import defer

        return await defer(self._resources)

    async def run_worker(
        self, *, concurrency: int = 4, once: bool = False, on_begin: Callable[[str], None] = lambda _: None
    ) -> None:
        """Process what is in the queue of the workers, until stopped; with `once` until it is empty.

        Raises `ArgumentInvalid` as `defer` does.
        """
        from afterword.client.background import run_worker

        if concurrency < 1:
            raise ArgumentInvalid(f"concurrency={concurrency} is too small; give 1 or more")
        await run_worker(self._resources, concurrency=concurrency, once=once, on_begin=on_begin)

    async def _scope_of_session(self, session_id: str) -> Scope:
        from afterword.client.processing import scope_of_session

        return await scope_of_session(await self._resources.store(), session_id)
