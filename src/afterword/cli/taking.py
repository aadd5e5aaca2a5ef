"""Which sessions a run takes: from paths, standard input or the queue, without those that failed and must wait."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import Session

from afterword.cli.output import UsageInvalid
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import NotDue, due_sessions, queued_sessions
from afterword.pipeline.intake import Saved
from afterword.pipeline.sources.databases import is_database
from afterword.pipeline.sources.folders import MANIFEST, find_sessions, session_from_state
from afterword.store import sessions
from afterword.store.database.engine import Store

STANDARD_INPUT = Path("-")
_ONE_STATE = "- reads one state: name it with --session and say whose with --user or --scope"


@dataclass(frozen=True, slots=True)
class Found:
    """Sessions at paths. Those that `are_named`, each by itself, are tried even if they failed just now."""

    sessions: Sequence[Saved]
    are_named: bool


def found(paths: Sequence[Path], *, session: str | None, whose: Scope | None, manifest: Path | None) -> Found | None:
    """Return the sessions that the arguments name, None for the queue. Raises `UsageInvalid` where they do not fit."""
    if STANDARD_INPUT in paths:
        if len(paths) > 1 or manifest is not None:
            raise UsageInvalid(_ONE_STATE)
        return _given(session, whose)
    if paths or manifest is not None:
        return _lying(paths, session=session, whose=whose, manifest=manifest)
    return _stored(session, whose)


def _given(session: str | None, whose: Scope | None) -> Found:
    if session is None or whose is None:
        raise UsageInvalid(_ONE_STATE)
    return Found([session_from_state(sys.stdin.buffer.read(), whose, session, datetime.now(UTC))], are_named=True)


def _stored(session: str | None, whose: Scope | None) -> Found | None:
    if (whose is None) != (session is None):
        raise UsageInvalid("without a path, --session and --user (or --scope) name one session that is stored")
    return Found([Saved(whose, session)], are_named=True) if whose and session else None


def _lying(paths: Sequence[Path], *, session: str | None, whose: Scope | None, manifest: Path | None) -> Found:
    lying = find_sessions(paths, scope=whose, manifest=manifest)
    if session is not None:
        lying = [one for one in lying if one.session_id == session]
        if not lying:
            raise UsageInvalid(f"no session {session!r} lies there; without --session all are processed")
    return Found(lying, are_named=session is not None or (manifest is None and all(map(_is_state, paths))))


async def due_now(store: Store, found: Found | None) -> tuple[list[Saved], list[NotDue]]:
    """Return what is to be processed now, and what failed before and has to wait.

    Raises `NotFound` where a session of the store is named that is not there.
    """
    if found is not None and found.are_named:
        await _check(store, found.sessions)
        return list(found.sessions), []
    waiting = await queued_sessions(store) if found is None else found.sessions
    told = await due_sessions(store, waiting, datetime.now(UTC))
    return [one for one in told if isinstance(one, Saved)], [one for one in told if isinstance(one, NotDue)]


async def _check(store: Store, named: Sequence[Saved]) -> None:

    def work(db: Session) -> None:
        for one in named:
            if one.path is None and one.state is None:
                sessions.load_state(db, one.scope, one.session_id)

    await store.read(work)


def _is_state(path: Path) -> bool:
    return path.is_file() and path.name != MANIFEST and not is_database(path)
