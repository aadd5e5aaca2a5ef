"""`ScopeMemory`: every method that reads or changes the memory of one scope."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from sqlmodel import Session

from afterword.agents.recorder import Recordable, record_session, resume
from afterword.agents.state_queue import store_and_queue_state
from afterword.client.agent_access import AgentAccess
from afterword.client.arguments import EVERY_STATUS, Instant, Source, check_not_future
from afterword.client.forgetting import ForgetTarget, forget, forget_older_than_allowed
from afterword.client.processing import (
    ProcessingOptions,
    consolidate,
    outdated_sessions,
    process,
    reprocess,
)
from afterword.client.results import ProcessingReport
from afterword.client.scope_changes import ScopeChanges
from afterword.client.session_processing.background_processor import existing_or_new_processor
from afterword.client.session_processing.selection import selection_from_source
from afterword.client.store_results import ExportedFile, OutdatedSession
from afterword.errors import ArgumentInvalid, NotFound, StateConflict
from afterword.extractors.readers.limits import check_depth
from afterword.extractors.transcript_assembly import MOST_AHEAD, no_earlier_than_clock
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import HUMAN_NAMES
from afterword.pipeline.consolidation import ConsolidationResult
from afterword.pipeline.memory_import import MemoryImportResult, import_memories
from afterword.pipeline.sources.other_libraries import ExportingLibrary, read_export
from afterword.store import scope_rows
from afterword.store.database.private_files import open_private_file
from afterword.store.forgetting.erasure import Receipt
from afterword.store.transfer.exports import export_scopes
from afterword.store.transfer.readable_export import write_as_json, write_as_markdown

if TYPE_CHECKING:
    from afterword.agents.memory import FactMemory
    from afterword.agents.tools import ToolOfAgent

LONGEST_NAME = 200
"""How much of an unknown name of a file an error shows."""
AgentOrTeam = TypeVar("AgentOrTeam", bound=Recordable)


class ScopeMemory(ScopeChanges):
    """The memory of one scope, from `Afterword.user` or `Afterword.scope`.

    Creating this object does not touch the store, and reading never creates a scope. It may be used from several event
    loops. Besides the errors that its description names, every method raises `StoreError` if the store does not answer.
    A fact, session or run of another scope counts as not found.
    """

    async def process(
        self,
        source: Source = None,
        *,
        manifest: str | Path | None = None,
        trust_manifest: bool = False,
        session_id: str | None = None,
        humans: Collection[str] = (),
        started_at: Instant | None = None,
        options: ProcessingOptions | None = None,
    ) -> ProcessingReport:
        """Extract facts from sessions, and return the result of each session.

        `source` is the path of a file or folder with saved states, or the id of a recorded session (any text that is
        not the path of a file or folder). It may also be the state itself, as a mapping or as the bytes of its JSON, or
        a list of messages, or a `TaskResult`; then `session_id` is required, and `humans` (names of people) and
        `started_at` (when the session began) may tell more about it. `manifest` is the path of a manifest file; the
        paths in this file are relative to its folder. Unless `trust_manifest` is set, a manifest may name only sessions
        of this scope and files below its own folder.
        Processing an unchanged session again costs nothing.

        A session that fails is reported as a `Failure` and does not stop the others. Raises `ArgumentInvalid`,
        `SourceInvalid`, and `NotFound` if the scope has no recorded session with the given id.
        """
        selection = selection_from_source(
            source,
            scope=self.scope,
            session_id=session_id,
            manifest=manifest,
            trust_manifest=trust_manifest,
            humans=tuple(humans),
            started_at=await self._started_at(started_at),
            at=self._resources.now(),
        )
        try:
            return await process(self._resources, selection, options)
        except NotFound as error:
            if isinstance(source, str):
                raise NotFound(f"there is no file or folder {source[:LONGEST_NAME]!r}; {error}") from None
            raise

    async def queue(
        self,
        state: Mapping[str, Any],
        *,
        session_id: str,
        humans: Collection[str] = (),
        started_at: Instant | None = None,
    ) -> None:
        """Store a saved state, and queue its session for `process(session_id)` or `run_pending`.

        `humans` are names of people who speak in the session, and `started_at` is when it began (by default, now).
        Raises `StateConflict` for an empty session id, or if another kind of agent saved this session, and `ReadError`
        for a state that is nested more than 200 levels deep.
        """
        check_depth(state)
        if not session_id.strip():
            raise StateConflict("the session id is empty; give each conversation an id of its own")
        await store_and_queue_state(
            await self._resources.store(),
            self.scope,
            session_id,
            state,
            component=str(state.get("type", "state")).removesuffix("State"),
            humans=tuple(humans),
            started_at=await self._started_at(started_at),
            at=self._resources.now(),
        )

    async def _started_at(self, value: Instant | None) -> datetime | None:
        """Return the argument `started_at` as a datetime. Raises `ArgumentInvalid` for a time in the future."""
        if value is None:
            return None
        at = await self._instant(value, time.min)
        check_not_future("started_at", at, now=no_earlier_than_clock(self._resources.now()), margin=MOST_AHEAD)
        return at

    async def reprocess(self, session_id: str, *, options: ProcessingOptions | None = None) -> ProcessingReport:
        """Extract facts again from the stored turns of a session, with the present extractor.

        With `ProcessingOptions(apply=False)` the changes are only proposed: the report shows them, and `apply(run_id)`
        applies them. Raises `NotFound` if the scope has no such session.
        """
        return await reprocess(self._resources, self.scope, session_id, options)

    async def outdated(self, *, extractor: str | None = None) -> tuple[OutdatedSession, ...]:
        """Return the sessions whose facts come from another extractor or version than the present one."""
        return await outdated_sessions(self._resources, self.scope, extractor)

    async def consolidate(self, *, apply: bool = True) -> ConsolidationResult:
        """Compare the statements of all sessions that were not compared before, and apply the judge's verdicts.

        The run waits for a person's approval if it would end many facts, if the policy of the scope says so, or with
        `apply=False`. Raises an `ExtractionError` if the judge gave no answer, and `ScopeBusy` if other writers kept
        changing the scope.
        """
        return (await consolidate(self._resources, [self.scope], apply=apply)).scopes[0].result

    async def preview_forget(
        self,
        *,
        fact: str | None = None,
        session: str | None = None,
        before: Instant | None = None,
        everything: bool = False,
        asked: bool = False,
        finding: str | None = None,
    ) -> Receipt | None:
        """Return how much `forget` with the same arguments would erase. Nothing is changed."""
        return await self._forget(ForgetTarget(fact, session, before, everything, asked, finding), is_preview=True)

    async def forget(
        self,
        *,
        fact: str | None = None,
        session: str | None = None,
        before: Instant | None = None,
        everything: bool = False,
        asked: bool = False,
        finding: str | None = None,
    ) -> Receipt | None:
        """Erase data permanently, and return counts of what was erased. It cannot be undone.

        Give exactly one argument: the id of a `fact`, `finding` or `session`; `before`, to erase what was said before
        this time (a date stands for its beginning); `everything=True`; or `asked=True`, to erase what people have asked
        to be forgotten (returns None if nobody has). Processing or importing the same session again does not bring it
        back, but what is said again later is stored as new. `is_clean` of the receipt tells whether the words are gone
        from the files of the database, too (on PostgreSQL: from its tables, indexes and statistics). Raises `NotFound`
        if there is nothing to erase, and `ArgumentInvalid`.
        """
        return await self._forget(ForgetTarget(fact, session, before, everything, asked, finding), is_preview=False)

    async def _forget(self, target: ForgetTarget, *, is_preview: bool) -> Receipt | None:
        return next(iter(await forget(self._resources, [self.scope], target, is_preview=is_preview)), None)

    async def apply_retention(self, *, preview: bool = False) -> Receipt | None:
        """Forget what is older than the settings in `[retention]` allow. Return a receipt, None if nothing is so old.

        With `preview`, nothing is forgotten. Without these settings everything is kept.
        """
        return next(iter(await forget_older_than_allowed(self._resources, [self.scope], is_preview=preview)), None)

    async def export(
        self, path: str | Path, *, readable: bool = False, even_asked: bool = False, file: TextIO | None = None
    ) -> ExportedFile:
        """Write a snapshot of the scope to a new file of mode 0600, or to `file` if this is given.

        `Afterword.import_` can read the file. With `readable`, the file holds the facts and their quotes for people to
        read: JSON if the name ends in .json, else Markdown. Raises `NotFound` if nothing was ever stored for the scope,
        and `FileInvalid` if the file exists. It also raises `FileInvalid` if a request to forget waits; with
        `even_asked` the scope is exported nevertheless, and what the request names stays hidden.
        """
        path, store = Path(path), await self._resources.store()
        if not readable:
            return ExportedFile(path, await export_scopes(store, path, [self.scope], even_asked=even_asked, file=file))

        if not await self._resources.read(lambda transaction: scope_rows.scope_key(transaction, self.scope)):
            raise NotFound(f"nothing was ever stored for {self.scope}")
        facts = (await self.facts(status=EVERY_STATUS)).facts
        write = write_as_json if path.suffix == ".json" else write_as_markdown

        def work(transaction: Session) -> None:
            with open_private_file(path, file) as written:
                write(transaction, self.scope, facts, written)

        await self._resources.read(work)
        return ExportedFile(path, len(facts))

    async def import_(self, path: str | Path, *, kind: str) -> MemoryImportResult:
        """Import memories that another library has exported, and return what was imported.

        `kind` is "mem0", "langmem", "listmemory", "chromadb", "graphiti" or "zep". (For a file that `export` wrote, use
        `Afterword.import_`.) Importing the same file again changes nothing.
        Raises `ArgumentInvalid` if the file does not exist or is not JSON, an `ExtractionError`, and `ScopeBusy`.
        """
        path = Path(path)
        if kind not in set(ExportingLibrary):
            raise ArgumentInvalid(f"kind={kind!r} is unknown; use one of {', '.join(ExportingLibrary)}")
        exported, file_time = await asyncio.to_thread(_read_json_file, path)
        async with self._resources.extractor_and_judge() as configured:
            imported = await import_memories(
                await self._resources.store(),
                self.scope,
                ExportingLibrary(kind),
                read_export(ExportingLibrary(kind), exported),
                at=self._resources.now(),
                file_time=file_time,
                judge=configured.judge,
                budget=self._resources.new_tracker(),
            )
        await self._resources.refresh_vectors([self.scope])
        return imported

    def record(
        self,
        agent_or_team: AgentOrTeam,
        *,
        session_id: str,
        humans: Collection[str] = (),
        off_the_record: bool = False,
        process: bool = False,
    ) -> AbstractAsyncContextManager[AgentOrTeam]:
        """Save the state of an agent or team at the end of an `async with` block, and queue it for processing.

        See `record_session`. With `process`, the facts are extracted in the background by `Afterword.processor`;
        otherwise call `run_pending` or `process(session_id)`. `humans` are the names of speakers who are people; "user"
        and "human" need not be named. Raises `StateConflict` for an empty session id, or if another kind of agent saved
        this session.
        """
        return record_session(
            agent_or_team,
            scope=self.scope,
            session_id=session_id,
            store=self._resources.shared_store(),
            humans=humans,
            off_the_record=off_the_record,
            process=existing_or_new_processor(self._resources) if process else False,
            clock=self._resources.now,
        )

    async def resume(self, agent_or_team: Recordable, *, session_id: str, missing_ok: bool = False) -> bool:
        """Load the saved state of a session into an agent or team of the same kind; return whether there was one.

        Raises `NotFound` if the scope has no such session (with `missing_ok` it returns False instead), and
        `StateConflict` if another kind of agent saved it.
        """
        return await resume(
            agent_or_team,
            scope=self.scope,
            session_id=session_id,
            store=self._resources.shared_store(),
            missing_ok=missing_ok,
        )

    def memory(
        self,
        *,
        also: Collection[Scope | str] = (),
        budget_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> FactMemory:
        """Return the AutoGen memory of this scope, for `AssistantAgent(..., memory=[...])`.

        It uses the store and the embedder of this `Afterword`, which must stay open. The arguments are those of
        `FactMemory`. Raises `ScopeInvalid` if `also` names a scope of another tenant, and `ArgumentInvalid`.
        """
        from afterword.agents.memory import FactMemory

        defaults = self._resources.settings.recall
        return FactMemory(
            scope=self.scope,
            also=also,
            store=self._resources.shared_store(),
            budget_tokens=defaults.budget_tokens if budget_tokens is None else budget_tokens,
            timeout_s=defaults.timeout_s if timeout_s is None else timeout_s,
            clock=self._resources.now,
            embedder=self._resources.embedder(),
        )

    def for_agent(self) -> AgentAccess:
        """Return access to this memory with the rights of an agent: its changes are requests that a person decides."""
        return AgentAccess(self, self._resources)

    def tools(self, *, humans: Collection[str] | None = None, findings: bool = False) -> list[ToolOfAgent]:
        """Return the tools `remember`, `recall` and `withdraw` of this scope, for `AssistantAgent(..., tools=...)`.

        The agent also needs a `memory` of the same scope. `humans` are the speakers whose words count, as in
        `memory_tools`. If the configured extractor is the offline rules, what they find in the person's last message
        counts at once. With `findings`, the list also contains the tool `save_finding`.
        """
        from afterword.agents.tools import memory_tools

        return memory_tools(
            self.memory(),
            humans=HUMAN_NAMES if humans is None else humans,
            extractor=self._resources.offline_extractor_if_configured(),
            findings=findings,
        )


def _read_json_file(path: Path) -> tuple[Any, datetime]:
    """Return the JSON in a file, and the time of the file. Raises `ArgumentInvalid`."""
    try:
        return json.loads(path.read_text(encoding="utf-8")), datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        raise ArgumentInvalid(f"there is no file {path}") from None
    except (ValueError, RecursionError):
        raise ArgumentInvalid(f"{path} is not JSON") from None
