"""Which sessions are processed: those at paths, a given state, one that was recorded, or the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlmodel import Session

from afterword.errors import NothingSelected
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import NotDue, due_sessions, queued_sessions
from afterword.pipeline.intake import Saved
from afterword.pipeline.sources.databases import is_database
from afterword.pipeline.sources.folders import MANIFEST, find_sessions
from afterword.store import sessions
from afterword.store.database.engine import Store


@dataclass(frozen=True, slots=True)
class Selection:
    """Sessions to process. Sessions that `are_named` individually are tried even if they have just failed."""

    sessions: Sequence[Saved]
    are_named: bool


def select_paths(
    paths: Sequence[Path],
    *,
    session_id: str | None = None,
    scope: Scope | None = None,
    manifest: Path | None = None,
    trust_manifest: bool = False,
) -> Selection:
    """Return the sessions at these paths, or the one of them with this id.

    Raises `SourceInvalid` as `find_sessions` does, and `NothingSelected` if no session there has this id.
    """
    saved = find_sessions(paths, scope=scope, manifest=manifest, trust_manifest=trust_manifest)
    if session_id is not None:
        saved = [session for session in saved if session.session_id == session_id]
        if not saved:
            raise NothingSelected(f"no session {session_id!r} lies there; without a session id all are processed")
    are_states = manifest is None and all(_is_state(path) for path in paths)
    return Selection(saved, are_named=session_id is not None or are_states)


async def sessions_to_process(
    store: Store, selection: Selection | None, at: datetime
) -> tuple[list[Saved], list[NotDue]]:
    """Return what is to be processed at this instant, and what failed before and has to wait.

    Without a selection the recorded sessions that wait. Raises `NotFound` if a recorded session is named that the
    store does not have.
    """
    if selection is not None and selection.are_named:
        await _check_recorded(store, selection.sessions)
        return list(selection.sessions), []
    waiting = await queued_sessions(store) if selection is None else selection.sessions
    saved_or_waiting = await due_sessions(store, waiting, at)
    return (
        [session for session in saved_or_waiting if isinstance(session, Saved)],
        [session for session in saved_or_waiting if isinstance(session, NotDue)],
    )


async def _check_recorded(store: Store, named: Sequence[Saved]) -> None:

    def work(transaction: Session) -> None:
        for session in named:
            if session.path is None and session.state is None and not session.reread:
                sessions.load_state(transaction, session.scope, session.session_id)

    await store.read(work)


def _is_state(path: Path) -> bool:
    return path.is_file() and path.name != MANIFEST and not is_database(path)
