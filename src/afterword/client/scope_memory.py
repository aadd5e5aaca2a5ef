"""The memory of one scope: every read and change that a program may need."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from sqlmodel import Session

from afterword.agents.recorder import Recordable, queue_state, record_session, resume
from afterword.client.agent_access import AgentAccess
from afterword.client.arguments import EVERY_STATUS, Instant, Source, check_not_future
from afterword.client.forgetting import ForgetTarget, forget, retain
from afterword.client.processing import ProcessingOptions, consolidate, outdated, process, reprocess, select
from afterword.client.results import ProcessingReport
from afterword.client.scope_changes import ScopeChanges
from afterword.client.session_processing.background_processor import processor_of
from afterword.client.store_results import ExportedFile, OutdatedSession
from afterword.errors import ArgumentInvalid, NotFound, StateConflict
from afterword.extractors.readers.limits import check_depth
from afterword.extractors.transcript_assembly import MOST_AHEAD, latest_present
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import HUMAN_NAMES
from afterword.pipeline.consolidation import ConsolidationResult
from afterword.pipeline.memory_import import MemoryImportResult, import_memories
from afterword.pipeline.sources.other_libraries import Origin, memories
from afterword.store import scope_rows
from afterword.store.database.private_files import opened_private
from afterword.store.forgetting.erasure import Receipt
from afterword.store.transfer.exports import export_scopes
from afterword.store.transfer.readable_export import write_as_json, write_as_markdown

if TYPE_CHECKING:
    from afterword.agents.memory import FactMemory
    from afterword.agents.tools import ToolOfAgent

AgentOrTeam = TypeVar("AgentOrTeam", bound="Recordable")


class ScopeMemory(ScopeChanges):
    """The memory of one scope, from `Afterword.user` or `Afterword.scope`.

    Making it reads and writes nothing; reading never makes a scope. It may be used from several event loops. Every
    method raises `StoreError` if the store does not answer, besides the errors that it names. Facts, sessions and runs
    of other scopes are unknown to it.
    """

    async def process(
        self,
        source: Source = None,
        *,
        manifest: str | Path | None = None,
        trust_manifest: bool = False,
        session_id: str | None = None,
        humans: Sequence[str] = (),
        started_at: Instant | None = None,
        options: ProcessingOptions | None = None,
    ) -> ProcessingReport:
        """Turn sessions into facts, and return the outcome of each session.

        `source` is a saved state: a file, a folder of files, or the state itself, as a mapping or as the bytes of its
        JSON (with `session_id`); or the id of a session that was recorded. A text that names no file or folder is such
        an id. `manifest` is a manifest whose paths are relative to it; it names sessions of this scope and files below
        its own folder only, unless you `trust_manifest`. `humans` and `started_at` are what is known of a
        given state: names of people, and when the session began. Processed again it costs nothing.

        A session that fails is reported as a `Failure` and does not stop the others. Raises `ArgumentInvalid`,
        `SourceInvalid`, and `NotFound` if a recorded session is named that the scope does not have.
        """
        selection = select(
            source,
            scope=self.scope,
            session_id=session_id,
            manifest=manifest,
            trust_manifest=trust_manifest,
            humans=humans,
            started_at=await self._started_at(started_at),
            at=self._resources.now(),
        )
        return await process(self._resources, selection, options)

    async def queue(
        self,
        state: Mapping[str, Any],
        *,
        session_id: str,
        humans: Collection[str] = (),
        started_at: Instant | None = None,
    ) -> None:
        """Store a saved state and queue its session: `process(session_id)` or `run_pending` extracts the facts.

        `humans` and `started_at` are what is known of it: names of people, and when it began (by default, now). Raises
        `StateConflict` for an empty session id, or if another kind of agent saved this session, and `ReadError` for a
        state that is nested more than 200 levels deep.
        """
        check_depth(state)
        if not session_id.strip():
            raise StateConflict("the session id is empty; give each conversation an id of its own")
        await queue_state(
            await self._store(),
            self.scope,
            session_id,
            state,
            component=str(state.get("type", "state")).removesuffix("State"),
            humans=tuple(humans),
            started_at=await self._started_at(started_at),
            at=self._resources.now(),
        )

    async def _started_at(self, value: Instant | None) -> datetime | None:
        """Return when a session began. Raises `ArgumentInvalid` for a time that lies in the future."""
        if value is None:
            return None
        at = await self._instant(value, time.min)
        check_not_future("started_at", at, now=latest_present(self._resources.now()), margin=MOST_AHEAD)
        return at

    async def reprocess(self, session_id: str, *, options: ProcessingOptions | None = None) -> ProcessingReport:
        """Read the stored turns of a session again, by the present extractor.

        With `ProcessingOptions(apply=False)` the result is proposed: its changes are shown and `apply(run_id)` applies
        them. Raises `NotFound` if the scope has no such session.
        """
        return await reprocess(self._resources, self.scope, session_id, options)

    async def outdated(self, *, extractor: str | None = None) -> tuple[OutdatedSession, ...]:
        """Return the sessions that were last read by another extractor, or another version of it."""
        return await outdated(self._resources, self.scope, extractor)

    async def consolidate(self, *, apply: bool = True) -> ConsolidationResult:
        """Judge the pairs that were left unjudged over all sessions, and apply the verdicts.

        The run is held for a person if it would retire many facts, if the policy of the scope says so, or with
        `apply=False`. Raises an `ExtractionError` if the judge gave no answer, and `ScopeBusy` if others kept changing
        the scope.
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
        """Return what `forget` with the same arguments would erase, in counts. Nothing is changed."""
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
        """Erase for good, keep it from coming back, and return counts of what was erased. It cannot be undone.

        Name exactly one: the id of a `fact`, `finding` or `session`; `before` an instant (of a date, its beginning);
        `everything`; or what people `asked` to be forgotten (None if nobody did). What is said again later is new.
        `is_clean` of the receipt says whether the words are gone from the database's files too. Raises `NotFound` if
        there is nothing of that kind, and `ArgumentInvalid`.
        """
        return await self._forget(ForgetTarget(fact, session, before, everything, asked, finding), is_preview=False)

    async def _forget(self, target: ForgetTarget, *, is_preview: bool) -> Receipt | None:
        return next(iter(await forget(self._resources, [self.scope], target, is_preview=is_preview)), None)

    async def apply_retention(self, *, preview: bool = False) -> Receipt | None:
        """Forget what is older than the settings in `[retention]` allow. Return a receipt, or None if there is nothing.

        With `preview` nothing is forgotten. Without these settings everything is kept.
        """
        return next(iter(await retain(self._resources, [self.scope], is_preview=preview)), None)

    async def export(
        self, path: str | Path, *, readable: bool = False, even_asked: bool = False, file: TextIO | None = None
    ) -> ExportedFile:
        """Write the scope to a new file of mode 0600, as of one moment. With `file`, it is written there.

        It is a file for `import_`, or with `readable` the facts and what was said, for people: JSON if the name ends in
        .json, else Markdown. Raises `NotFound` if nothing was ever kept, and `FileInvalid` if the file exists, or if
        somebody has asked for something to be forgotten (with `even_asked` it is exported, hidden as it is).
        """
        path, store = Path(path), await self._store()
        if not readable:
            return ExportedFile(path, await export_scopes(store, path, [self.scope], even_asked=even_asked, file=file))

        if not await self._read(lambda transaction: scope_rows.scope_key(transaction, self.scope)):
            raise NotFound(f"nothing was ever kept for {self.scope}")
        facts = (await self.facts(status=EVERY_STATUS)).facts
        write = write_as_json if path.suffix == ".json" else write_as_markdown

        def work(transaction: Session) -> None:
            with opened_private(path, file) as written:
                write(transaction, self.scope, facts, written)

        await self._read(work)
        return ExportedFile(path, len(facts))

    async def import_(self, path: str | Path, *, kind: str) -> MemoryImportResult:
        """Import what another library exported.

        `kind` is "mem0", "langmem", "listmemory", "chromadb", "graphiti" or "zep".
        A file of `export` names its scopes itself: `Afterword.import_` takes it. Importing again changes nothing.
        Raises `ArgumentInvalid` for a file that is not there or no JSON, an `ExtractionError` and `ScopeBusy`.
        """
        path = Path(path)
        if kind not in set(Origin):
            raise ArgumentInvalid(f"kind={kind!r} is unknown; use one of {', '.join(Origin)}")
        try:
            exported = json.loads(await asyncio.to_thread(path.read_text, encoding="utf-8"))
            file_time = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except OSError:
            raise ArgumentInvalid(f"there is no file {path}") from None
        except (ValueError, RecursionError):
            raise ArgumentInvalid(f"{path} is no JSON") from None
        async with self._resources.extractor_and_judge() as workers:
            imported = await import_memories(
                await self._store(),
                self.scope,
                Origin(kind),
                memories(Origin(kind), exported),
                at=self._resources.now(),
                file_time=file_time,
                judge=workers.judge,
                budget=self._resources.tracker(),
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

        Like `record_session`, for this memory. `run_pending` or `process(session_id)` extracts the facts; with
        `process` that is done in the background, by `Afterword.processor`. `humans` are
        names of people, for speakers whose names do not say so. Raises `StateConflict` for an empty session id, or if
        another kind of agent saved this session.
        """
        return record_session(
            agent_or_team,
            scope=self.scope,
            session_id=session_id,
            store=self._resources.shared_store(),
            humans=humans,
            off_the_record=off_the_record,
            process=processor_of(self._resources) if process else False,
            clock=self._resources.now,
        )

    async def resume(self, agent_or_team: Recordable, *, session_id: str, missing_ok: bool = False) -> bool:
        """Load the saved state of a session into an agent or team of the same make; return whether there was one.

        Raises `NotFound` if the scope has no such session (False with `missing_ok`), and `StateConflict` if another
        kind of agent saved it.
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
        `FactMemory`. Raises `ScopeInvalid` if `also` names a scope of another tenant.
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
        """Return this memory as an agent may use it: it reads what a block could tell, and asks for changes."""
        return AgentAccess(self, self._resources)

    def tools(self, *, humans: Collection[str] | None = None, findings: bool = False) -> list[ToolOfAgent]:
        """Return the tools `remember`, `recall` and `withdraw` of this scope, for `AssistantAgent(..., tools=...)`.

        The agent needs a `memory` of the same scope. `humans` are the speakers whose words count, as in `memory_tools`.
        If the configured extractor is the offline rules, what they find in the person's last message counts at once.
        With `findings` the tool `save_finding` comes with them, for agents whose findings the scope keeps.
        """
        from afterword.agents.tools import memory_tools

        return memory_tools(
            self.memory(),
            humans=HUMAN_NAMES if humans is None else humans,
            extractor=self._resources.extractor_without_calls(),
            findings=findings,
        )
