"""Exports a store, or some of its scopes, to a file of JSON Lines that another store can import.

The first line names the format and its version. The last line counts the lines, so that a truncated file is recognised.
Costs are not exported. Facts are not exported either, since an import derives them again.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from sqlmodel import Session, SQLModel, col, select

from afterword import telemetry
from afterword.errors import FileInvalid, NotFound
from afterword.facts.assertions import SpeechAct
from afterword.facts.scopes import Scope
from afterword.facts.validity.timeline import erased_ids
from afterword.store import lookup
from afterword.store.database.engine import Store
from afterword.store.database.private_files import opened_private
from afterword.store.findings.finding_rows import FindingRow
from afterword.store.forgetting.forgotten_statements import read_waiting_requests
from afterword.store.forgetting.hash_keys import ensure_store_key
from afterword.store.forgetting.tombstone_rows import tombstone_lines
from afterword.store.json_lines import Line
from afterword.store.scope_rows import read_scopes, scope_of_row, scope_row
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    MovedSourceRow,
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
from afterword.store.transfer.export_lines import FORMAT, VERSION

PAGE = 200
"""How many rows are read at once."""
SESSIONS_A_PAGE = 20
"""How many sessions are read at once. These are fewer, since each comes with all its turns."""


@telemetry.staged(telemetry.Stage.EXPORT)
async def export_scopes(
    store: Store,
    path: Path,
    scopes: Sequence[Scope] | None = None,
    *,
    even_asked: bool = False,
    file: TextIO | None = None,
) -> int:
    """Write these scopes (by default all), as of one instant, to a new file of mode 0600; return the number of lines.

    If the open file `file` is given, the lines are written there, and `path` only names it.

    Raises `NotFound` for a scope of which nothing is stored, and `FileInvalid` if the file exists already, or if
    somebody has asked for something in a scope to be forgotten. With `even_asked` that is exported too, and stays
    hidden where it is imported.
    """
    key = await store.write(ensure_store_key)

    def work(transaction: Session) -> int:
        chosen = read_scopes(transaction) if scopes is None else list(scopes)
        rows = [_exportable_row(transaction, scope, even_asked=even_asked) for scope in chosen]
        count = 0
        with opened_private(path, file) as written:
            written.write(_text({"row": "head", "format": FORMAT, "version": VERSION, "origin": key.id}))
            for line in _lines(transaction, chosen, rows):
                written.write(_text(line))
                count += 1
            written.write(_text({"row": "foot", "lines": count}))
        return count

    count = await store.read(work)
    telemetry.note(lines=count)
    return count


def _exportable_row(transaction: Session, scope: Scope, *, even_asked: bool) -> Any:
    row = scope_row(transaction, scope)
    if row is None:
        raise NotFound(f"nothing was ever stored for {scope}")
    requests = select(AssertionRow.id).where(AssertionRow.scope_id == row.id, AssertionRow.act == str(SpeechAct.ERASE))
    if even_asked or transaction.exec(requests.limit(1)).first() is None:
        return row
    known = lookup.read_knowledge(transaction, scope)
    if read_waiting_requests(transaction, scope) or erased_ids(known.assertions, known.verdicts):
        raise FileInvalid(
            f"somebody has asked for something in {scope} to be forgotten: first forget it (with `asked`) or reject "
            "the request; `afterword export --even-asked` exports it all the same"
        )
    return row


def _lines(transaction: Session, scopes: Sequence[Scope], rows: Sequence[Any]) -> Iterator[Line]:
    yield from tombstone_lines(transaction, scopes)
    for scope, row in zip(scopes, rows, strict=True):
        settings: Line = {"zone": row.zone, "findings": row.findings, "other_people": row.other_people}
        settings["paused_at"] = row.paused_at
        set_here = {name: value for name, value in settings.items() if value is not None}
        yield {"row": "scope", "scope": str(scope), "policy": row.policy, **set_here}
        for lines in (_session_lines, _assertion_lines, _window_lines, _verdict_lines, _run_lines):
            yield from lines(transaction, row)
        yield {"row": "end", "scope": str(scope)}


ScopedRow = SessionRow | AssertionRow | WindowRow | VerdictRow | RunRow


def _pages(
    transaction: Session, table: type[ScopedRow], key: Any, scope: Any, size: int = PAGE
) -> Iterator[Sequence[Any]]:
    """Yield the rows of a scope in the order of their key, in lists of at most `size`."""
    query = select(table).where(col(table.scope_id) == scope.id).order_by(key)
    yield from transaction.exec(query.execution_options(yield_per=size)).partitions()


def _grouped(transaction: Session, table: type[SQLModel], owner: Any, keys: list[Any], *order: Any) -> dict[Any, Any]:
    """Return the rows whose column `owner` has one of these keys, as lists by that key, sorted by `order`."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in transaction.exec(select(table).where(owner.in_(keys)).order_by(owner, *order)):
        groups[getattr(row, owner.key)].append(row)
    return groups


def _session_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _pages(transaction, SessionRow, col(SessionRow.id), scope, SESSIONS_A_PAGE):
        keys = [row.id for row in rows]
        turns = _grouped(transaction, TurnRow, col(TurnRow.session_pk), keys, col(TurnRow.number))
        states = transaction.exec(select(StateRow).where(col(StateRow.session_pk).in_(keys)))
        state_values = {state.session_pk: _values(state, "session_pk") for state in states}
        for row in rows:
            values = {"row": "session", **_values(row, "id", "scope_id"), "state": state_values.get(row.id)}
            yield {**values, "turns": [_values(turn, "session_pk", "search_terms", "shown") for turn in turns[row.id]]}


def _assertion_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _pages(transaction, AssertionRow, col(AssertionRow.id), scope):
        keys = [row.id for row in rows]
        evidence = _grouped(transaction, EvidenceRow, col(EvidenceRow.assertion_id), keys, col(EvidenceRow.ordinal))
        for row in rows:
            pieces = [_values(piece, "assertion_id") for piece in evidence[row.id]]
            yield {"row": "assertion", **_values(row, "scope_id"), "evidence": pieces}


def _window_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _pages(transaction, WindowRow, col(WindowRow.id), scope):
        keys, window_id = [row.id for row in rows], col(WindowAssertionRow.window_id)
        ties = _grouped(transaction, WindowAssertionRow, window_id, keys, col(WindowAssertionRow.assertion_id))
        refused = _grouped(transaction, RejectionRow, col(RejectionRow.window_id), keys, col(RejectionRow.ordinal))
        findings = _grouped(transaction, FindingRow, col(FindingRow.window_id), keys, col(FindingRow.id))
        for row in rows:
            values = {"row": "window", **_values(row, "id", "scope_id")}
            values["assertions"] = [tie.assertion_id for tie in ties[row.id]]
            values["rejections"] = [_values(refusal, "window_id") for refusal in refused[row.id]]
            of_agents = [_values(finding, "scope_id", "window_id") for finding in findings[row.id]]
            yield {**values, "findings": of_agents} if of_agents else values


def _verdict_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _pages(transaction, VerdictRow, col(VerdictRow.key), scope):
        for row in rows:
            yield {"row": "verdict", **_values(row, "scope_id")}


def _run_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _pages(transaction, RunRow, col(RunRow.id), scope):
        keys = [row.id for row in rows]
        windows: dict[int, list[tuple[str, str]]] = defaultdict(list)
        ties = select(RunWindowRow.run_id, WindowRow.source, WindowRow.key).where(
            col(WindowRow.id) == col(RunWindowRow.window_id), col(RunWindowRow.run_id).in_(keys)
        )
        ties = ties.order_by(col(RunWindowRow.run_id), col(RunWindowRow.ordinal))
        for run_id, source, key in transaction.exec(ties).all():
            windows[run_id].append((source, key))
        verdicts = _grouped(transaction, RunVerdictRow, col(RunVerdictRow.run_id), keys, col(RunVerdictRow.verdict_key))
        names = select(SessionRow.id, SessionRow.session_id).where(
            col(SessionRow.id).in_([row.session_pk for row in rows if row.session_pk])
        )
        session_ids = dict(transaction.exec(names).all())
        moved = _moved_sources(transaction, keys)
        for row in rows:
            yield {
                "row": "run",
                **_values(row, "scope_id", "session_pk"),
                "session_id": session_ids.get(row.session_pk),
                "windows": windows[row.id],
                "verdicts": [tie.verdict_key for tie in verdicts[row.id]],
                **({"moved": moved[row.id]} if row.id in moved else {}),
            }


def _moved_sources(transaction: Session, run_ids: list[Any]) -> dict[int, list[tuple[str, str, str]]]:
    """Return the sources that each run moved: the former scope, the former and the present name of each, by run id."""
    query = select(MovedSourceRow, ScopeRow).where(
        col(MovedSourceRow.run_id).in_(run_ids), col(ScopeRow.id) == col(MovedSourceRow.former_scope_id)
    )
    moved: dict[int, list[tuple[str, str, str]]] = defaultdict(list)
    for row, former in transaction.exec(query.order_by(col(MovedSourceRow.source))).all():
        moved[row.run_id].append((str(scope_of_row(former)), row.former_source, row.source))
    return moved


def _values(row: SQLModel, *left_out: str) -> Line:
    return {name: value for name, value in row.model_dump(exclude=set(left_out)).items() if value is not None}


def _text(line: Line) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=_json_value) + "\n"


def _json_value(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"a {type(value).__name__} cannot be exported")
