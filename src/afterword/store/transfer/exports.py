"""Exports a store, or some of its scopes, to a file of JSON Lines that another store can import.

The first line names the format and its version. The last line counts the lines, so that a truncated file is recognised.
Costs are not exported. Facts are not exported either, since an import derives them again.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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
from afterword.store.database.private_files import open_private_file
from afterword.store.findings.finding_rows import FindingRow
from afterword.store.forgetting.forgotten_statements import read_erase_requests_in_force
from afterword.store.forgetting.hash_keys import ensure_store_key
from afterword.store.forgetting.tombstone_rows import forgotten_content_lines
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
        rows = [_exportable_scope_row(transaction, scope, even_asked=even_asked) for scope in chosen]
        with open_private_file(path, file) as written:
            return _write_lines(written, _scope_lines(transaction, chosen, rows), origin=key.id)

    count = await store.read(work)
    telemetry.note(lines=count)
    return count


def _write_lines(file: TextIO, lines: Iterable[Line], origin: str) -> int:
    """Write these lines between the first and the last line of an export; return how many they are."""
    count = 0
    file.write(_line_text({"row": "head", "format": FORMAT, "version": VERSION, "origin": origin}))
    for line in lines:
        file.write(_line_text(line))
        count += 1
    file.write(_line_text({"row": "foot", "lines": count}))
    return count


def _exportable_scope_row(transaction: Session, scope: Scope, *, even_asked: bool) -> Any:
    row = scope_row(transaction, scope)
    if row is None:
        raise NotFound(f"nothing was ever stored for {scope}")
    requests = select(AssertionRow.id).where(AssertionRow.scope_id == row.id, AssertionRow.act == str(SpeechAct.ERASE))
    if even_asked or transaction.exec(requests.limit(1)).first() is None:
        return row
    known = lookup.read_knowledge(transaction, scope)
    if read_erase_requests_in_force(transaction, scope) or erased_ids(known.assertions, known.verdicts):
        raise FileInvalid(
            f"somebody has asked for something in {scope} to be forgotten: first forget it (with `asked`) or reject "
            "the request; `afterword export --even-asked` exports it all the same"
        )
    return row


def _scope_lines(transaction: Session, scopes: Sequence[Scope], rows: Sequence[Any]) -> Iterator[Line]:
    yield from forgotten_content_lines(transaction, scopes)
    for scope, row in zip(scopes, rows, strict=True):
        settings: Line = {"zone": row.zone, "findings": row.findings, "other_people": row.other_people}
        settings["paused_at"] = row.paused_at
        set_here = {name: value for name, value in settings.items() if value is not None}
        yield {"row": "scope", "scope": str(scope), "policy": row.policy, **set_here}
        for lines in (_session_lines, _assertion_lines, _window_lines, _verdict_lines, _run_lines):
            yield from lines(transaction, row)
        yield {"row": "end", "scope": str(scope)}


ScopedRow = SessionRow | AssertionRow | WindowRow | VerdictRow | RunRow


def _read_pages(
    transaction: Session, table: type[ScopedRow], key: Any, scope: Any, size: int = PAGE
) -> Iterator[Sequence[Any]]:
    """Yield the rows of a scope in the order of their key, in lists of at most `size`."""
    query = select(table).where(col(table.scope_id) == scope.id).order_by(key)
    yield from transaction.exec(query.execution_options(yield_per=size)).partitions()


def _rows_by_owner(
    transaction: Session, table: type[SQLModel], owner: Any, keys: list[Any], *order: Any
) -> dict[Any, Any]:
    """Return the rows whose column `owner` has one of these keys, as lists by that key, sorted by `order`."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in transaction.exec(select(table).where(owner.in_(keys)).order_by(owner, *order)):
        groups[getattr(row, owner.key)].append(row)
    return groups


def _session_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _read_pages(transaction, SessionRow, col(SessionRow.id), scope, SESSIONS_A_PAGE):
        keys = [row.id for row in rows]
        turns = _rows_by_owner(transaction, TurnRow, col(TurnRow.session_pk), keys, col(TurnRow.number))
        states = transaction.exec(select(StateRow).where(col(StateRow.session_pk).in_(keys)))
        state_values = {state.session_pk: _column_values(state, "session_pk") for state in states}
        for row in rows:
            values = {"row": "session", **_column_values(row, "id", "scope_id"), "state": state_values.get(row.id)}
            yield {
                **values,
                "turns": [_column_values(turn, "session_pk", "search_terms", "shown") for turn in turns[row.id]],
            }


def _assertion_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _read_pages(transaction, AssertionRow, col(AssertionRow.id), scope):
        keys = [row.id for row in rows]
        evidence = _rows_by_owner(
            transaction, EvidenceRow, col(EvidenceRow.assertion_id), keys, col(EvidenceRow.ordinal)
        )
        for row in rows:
            pieces = [_column_values(piece, "assertion_id") for piece in evidence[row.id]]
            yield {"row": "assertion", **_column_values(row, "scope_id"), "evidence": pieces}


def _window_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _read_pages(transaction, WindowRow, col(WindowRow.id), scope):
        keys, window_id = [row.id for row in rows], col(WindowAssertionRow.window_id)
        ties = _rows_by_owner(transaction, WindowAssertionRow, window_id, keys, col(WindowAssertionRow.assertion_id))
        refused = _rows_by_owner(
            transaction, RejectionRow, col(RejectionRow.window_id), keys, col(RejectionRow.ordinal)
        )
        findings = _rows_by_owner(transaction, FindingRow, col(FindingRow.window_id), keys, col(FindingRow.id))
        for row in rows:
            values = {"row": "window", **_column_values(row, "id", "scope_id")}
            values["assertions"] = [tie.assertion_id for tie in ties[row.id]]
            values["rejections"] = [_column_values(refusal, "window_id") for refusal in refused[row.id]]
            of_agents = [_column_values(finding, "scope_id", "window_id") for finding in findings[row.id]]
            yield {**values, "findings": of_agents} if of_agents else values


def _verdict_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _read_pages(transaction, VerdictRow, col(VerdictRow.key), scope):
        for row in rows:
            yield {"row": "verdict", **_column_values(row, "scope_id")}


def _run_lines(transaction: Session, scope: Any) -> Iterator[Line]:
    for rows in _read_pages(transaction, RunRow, col(RunRow.id), scope):
        keys = [row.id for row in rows]
        windows = _windows_of_runs(transaction, keys)
        verdicts = _rows_by_owner(
            transaction, RunVerdictRow, col(RunVerdictRow.run_id), keys, col(RunVerdictRow.verdict_key)
        )
        session_ids = _session_ids_of_runs(transaction, rows)
        moved = _moved_sources(transaction, keys)
        for row in rows:
            yield {
                "row": "run",
                **_column_values(row, "scope_id", "session_pk"),
                "session_id": session_ids.get(row.session_pk),
                "windows": windows[row.id],
                "verdicts": [tie.verdict_key for tie in verdicts[row.id]],
                **({"moved": moved[row.id]} if row.id in moved else {}),
            }


def _windows_of_runs(transaction: Session, run_ids: list[Any]) -> dict[int, list[tuple[str, str]]]:
    """Return the source and the key of each window of these runs, in order, by the id of the run."""
    query = select(RunWindowRow.run_id, WindowRow.source, WindowRow.key).where(
        col(WindowRow.id) == col(RunWindowRow.window_id), col(RunWindowRow.run_id).in_(run_ids)
    )
    windows: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for run_id, source, key in transaction.exec(query.order_by(col(RunWindowRow.run_id), col(RunWindowRow.ordinal))):
        windows[run_id].append((source, key))
    return windows


def _session_ids_of_runs(transaction: Session, runs: Sequence[Any]) -> dict[int | None, str]:
    """Return the ids of the sessions that these runs have read, by the key of the session."""
    keys = [run.session_pk for run in runs if run.session_pk]
    query = select(SessionRow.id, SessionRow.session_id).where(col(SessionRow.id).in_(keys))
    return dict(transaction.exec(query).all())


def _moved_sources(transaction: Session, run_ids: list[Any]) -> dict[int, list[tuple[str, str, str]]]:
    """Return the sources that each run moved: the former scope, the former and the present name of each, by run id."""
    query = select(MovedSourceRow, ScopeRow).where(
        col(MovedSourceRow.run_id).in_(run_ids), col(ScopeRow.id) == col(MovedSourceRow.former_scope_id)
    )
    moved: dict[int, list[tuple[str, str, str]]] = defaultdict(list)
    for row, former in transaction.exec(query.order_by(col(MovedSourceRow.source))).all():
        moved[row.run_id].append((str(scope_of_row(former)), row.former_source, row.source))
    return moved


def _column_values(row: SQLModel, *left_out: str) -> Line:
    return {name: value for name, value in row.model_dump(exclude=set(left_out)).items() if value is not None}


def _line_text(line: Line) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=_json_value) + "\n"


def _json_value(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"a {type(value).__name__} cannot be exported")
