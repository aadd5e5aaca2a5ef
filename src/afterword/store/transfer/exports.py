"""A store, or a part of it, as JSON Lines: everything that a store elsewhere needs to be equal.

The first line names the format and its version, the last one counts the lines, so that a file cut short is known.
Spendings stay where they were spent; facts are derived again.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, SQLModel, col, select

from afterword import telemetry
from afterword.errors import FileInvalid, NotFound
from afterword.facts.assertions import SpeechAct
from afterword.facts.scopes import Scope
from afterword.store import scope_rows
from afterword.store.database.engine import Store
from afterword.store.database.private_files import opened_private
from afterword.store.forgetting import erasure
from afterword.store.forgetting.tombstone_rows import ensure_store_key, tombstone_lines
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RejectionRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeRow,
    SessionRow,
    StateRow,
    TurnRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)
from afterword.store.transfer.export_file import FORMAT, VERSION
from afterword.store.transfer.json_rows import Line
from afterword.telemetry import Stage

PAGE = 200
"""How many rows are read at once; a session comes with all its turns, so fewer of those."""
SESSIONS_A_PAGE = 20


@telemetry.staged(Stage.EXPORT)
async def export_scopes(
    store: Store, path: Path, scopes: Sequence[Scope] | None = None, *, even_asked: bool = False
) -> int:
    """Write these scopes (all, by default) to a new file of mode 0600, as of one moment; return how many lines.

    Raises `NotFound` for a scope of which nothing is kept, and `FileInvalid` where the file is there already, or where
    somebody has asked for something in it to be forgotten; with `even_asked` it is exported, hidden as it is here.
    """
    key = await store.write(ensure_store_key)

    def work(transaction: Session) -> int:
        count = 0
        whose = scope_rows.read_scopes(transaction) if scopes is None else list(scopes)
        _check(transaction, whose, even_asked=even_asked)
        with opened_private(path) as file:
            head = {"row": "head", "format": FORMAT, "version": VERSION, "origin": key.id}
            file.write(_text(head))
            for line in _lines(transaction, whose):
                file.write(_text(line))
                count += 1
            file.write(_text({"row": "foot", "lines": count}))
        return count

    count = await store.read(work)
    telemetry.note(lines=count)
    return count


def _check(transaction: Session, scopes: Sequence[Scope], *, even_asked: bool) -> None:
    for scope in scopes:
        row = scope_rows.scope_row(transaction, scope)
        if row is None:
            raise NotFound(f"nothing was ever kept for {scope}")
        requests = select(func.count()).select_from(AssertionRow)
        requests = requests.where(AssertionRow.scope_id == row.id, AssertionRow.act == str(SpeechAct.ERASE))
        if not even_asked and transaction.exec(requests).one() and erasure.requested_ids(transaction, scope):
            raise FileInvalid(
                f"somebody has asked for something in {scope} to be forgotten: `afterword forget --asked` carries that "
                "out, --even-asked exports it all the same"
            )


def _lines(transaction: Session, scopes: Sequence[Scope]) -> Iterator[Line]:
    for line in tombstone_lines(transaction, scopes):
        yield line
    for scope in scopes:
        row = scope_rows.scope_row(transaction, scope)
        if row is None or row.id is None:
            continue
        yield {"row": "scope", "scope": str(scope), "policy": row.policy}
        for lines in (_sessions, _assertions, _windows, _verdicts, _runs):
            for line in lines(transaction, row):
                yield line
        yield {"row": "end", "scope": str(scope)}


def _pages(
    transaction: Session, table: type[SQLModel], key: Any, scope: ScopeRow, size: int = PAGE
) -> Iterator[list[Any]]:
    """Yield the rows of a scope in the order of their key, some at a time."""
    last: Any = None
    while True:
        of_scope = col(table.scope_id) == scope.id  # type: ignore[attr-defined]  # every table that is paged has one
        query: Any = select(table).where(of_scope).order_by(key).limit(size)
        rows = list(transaction.exec(query if last is None else query.where(key > last)))
        if not rows:
            return
        last = getattr(rows[-1], key.key)
        yield rows


def _sessions(transaction: Session, scope: ScopeRow) -> Iterator[Line]:
    for rows in _pages(transaction, SessionRow, col(SessionRow.id), scope, SESSIONS_A_PAGE):
        keys = [row.id for row in rows]
        turns: dict[int, list[Line]] = defaultdict(list)
        query = select(TurnRow).where(col(TurnRow.session_pk).in_(keys))
        for turn in transaction.exec(query.order_by(col(TurnRow.session_pk), col(TurnRow.number))):
            turns[turn.session_pk].append(_values(turn, "session_pk"))
        states = transaction.exec(select(StateRow).where(col(StateRow.session_pk).in_(keys)))
        kept = {state.session_pk: _values(state, "session_pk") for state in states}
        for row in rows:
            values = _values(row, "id", "scope_id")
            yield {"row": "session", **values, "state": kept.get(row.id), "turns": turns[row.id]}


def _assertions(transaction: Session, scope: ScopeRow) -> Iterator[Line]:
    for rows in _pages(transaction, AssertionRow, col(AssertionRow.id), scope):
        evidence: dict[str, list[Line]] = defaultdict(list)
        query = select(EvidenceRow).where(col(EvidenceRow.assertion_id).in_([row.id for row in rows]))
        for item in transaction.exec(query.order_by(col(EvidenceRow.assertion_id), col(EvidenceRow.ordinal))):
            evidence[item.assertion_id].append(_values(item, "assertion_id"))
        for row in rows:
            yield {"row": "assertion", **_values(row, "scope_id"), "evidence": evidence[row.id]}


def _windows(transaction: Session, scope: ScopeRow) -> Iterator[Line]:
    for rows in _pages(transaction, WindowRow, col(WindowRow.id), scope):
        keys = [row.id for row in rows]
        said: dict[int, list[str]] = defaultdict(list)
        ties = select(WindowAssertionRow).where(col(WindowAssertionRow.window_id).in_(keys))
        for tie in transaction.exec(ties.order_by(col(WindowAssertionRow.assertion_id))):
            said[tie.window_id].append(tie.assertion_id)
        refused: dict[int, list[Line]] = defaultdict(list)
        query = select(RejectionRow).where(col(RejectionRow.window_id).in_(keys))
        for one in transaction.exec(query.order_by(col(RejectionRow.window_id), col(RejectionRow.ordinal))):
            refused[one.window_id].append(_values(one, "window_id"))
        for row in rows:
            values = _values(row, "id", "scope_id")
            yield {"row": "window", **values, "assertions": said[row.id], "rejections": refused[row.id]}


def _verdicts(transaction: Session, scope: ScopeRow) -> Iterator[Line]:
    for rows in _pages(transaction, VerdictRow, col(VerdictRow.key), scope):
        for row in rows:
            yield {"row": "verdict", **_values(row, "scope_id")}


def _runs(transaction: Session, scope: ScopeRow) -> Iterator[Line]:
    for rows in _pages(transaction, RunRow, col(RunRow.id), scope):
        keys = [row.id for row in rows]
        read: dict[int, list[tuple[str, str]]] = defaultdict(list)
        ties = select(RunWindowRow.run_id, WindowRow.source, WindowRow.key).where(
            col(WindowRow.id) == col(RunWindowRow.window_id), col(RunWindowRow.run_id).in_(keys)
        )
        for run_id, source, key in (
            transaction.exec(ties.order_by(col(RunWindowRow.run_id), col(RunWindowRow.ordinal)))
        ).all():
            read[run_id].append((source, key))
        stands: dict[int, list[str]] = defaultdict(list)
        query = select(RunVerdictRow).where(col(RunVerdictRow.run_id).in_(keys))
        for tie in transaction.exec(query.order_by(col(RunVerdictRow.verdict_key))):
            stands[tie.run_id].append(tie.verdict_key)
        names = select(SessionRow.id, SessionRow.session_id).where(
            col(SessionRow.id).in_([row.session_pk for row in rows if row.session_pk])
        )
        sessions = dict(transaction.exec(names).all())
        for row in rows:
            values = _values(row, "scope_id", "session_pk")
            session_id = sessions.get(row.session_pk)
            yield {
                "row": "run",
                **values,
                "session_id": session_id,
                "windows": read[row.id],
                "verdicts": stands[row.id],
            }


def _values(row: SQLModel, *left_out: str) -> Line:
    return {name: value for name, value in row.model_dump(exclude=set(left_out)).items() if value is not None}


def _text(line: Line) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=_plain) + "\n"


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"a {type(value).__name__} has no place in an export")
