"""Writes tombstones to a file for backups, and replays such a file to forget again what a restored backup contains."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.exc import StatementError
from sqlmodel import Session, select

from afterword.errors import FileInvalid
from afterword.facts.assertions import Assertion
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Turn
from afterword.privacy.blanking import FORGOTTEN
from afterword.store import lookup
from afterword.store.database.engine import Store
from afterword.store.database.private_files import open_private_file
from afterword.store.database.statements import chunks
from afterword.store.findings.finding_rows import is_finding_forgotten
from afterword.store.forgetting.erasable_tables import SessionKeys
from afterword.store.forgetting.erasure import Erasure, erase_in_scope
from afterword.store.forgetting.hash_keys import add_imported_keys
from afterword.store.forgetting.seen_turn_rows import add_imported_seen_turns, parse_seen_turns
from afterword.store.forgetting.tombstone_rows import (
    add_imported_tombstones,
    forgotten_content_lines,
    parse_tombstone,
    read_forgotten_content,
)
from afterword.store.json_lines import Line, damaged_file_error, read_lines
from afterword.store.scope_rows import read_scopes
from afterword.store.sessions import turns_by_session_pk
from afterword.store.tables import AssertionRow

FORMAT, VERSION = "afterword tombstones", 1
EXPORT = "afterword export", 1
"""The format and the version of an export file, which contains tombstones too."""

_COUNTED = ("facts", "assertions", "findings", "sessions", "turns")

_PARSERS: Mapping[str, Callable[[Line], Any]] = {
    "key": lambda line: bytes.fromhex(line["key"]),
    "tombstone": parse_tombstone,
    "seen": parse_seen_turns,
}
"""The functions that read the lines about what was forgotten, by the kind of the line."""

ChangedTurns = dict[tuple[str, int], str]
"""The new texts of turns that were blanked, by session id and turn number."""


async def write_tombstones(store: Store, path: Path, scopes: Sequence[Scope] | None = None) -> int:
    """Write the tombstones of these scopes (by default of all) to a new file; return how many were written.

    Raises `FileInvalid` if the file exists already.
    """
    lines = await store.read(
        lambda transaction: forgotten_content_lines(transaction, read_scopes(transaction) if scopes is None else scopes)
    )
    with open_private_file(path) as file:
        for line in ({"row": "head", "format": FORMAT, "version": VERSION}, *lines):
            file.write(json.dumps(line) + "\n")
    return sum(line["row"] == "tombstone" for line in lines)


async def replay_tombstones(store: Store, path: Path, *, at: datetime) -> tuple[int, Counter[str]]:
    """Store the tombstones of a file and erase what they forbid.

    The file is one of `write_tombstones` or an export. Returns how many tombstones it contains, and how many rows were
    deleted because of them, by table. Raises `FileInvalid` if the file is neither.
    """
    parsed: dict[str, list[Any]] = {kind: [] for kind in _PARSERS}
    for line in _read_tombstone_lines(path):
        if line["row"] in _PARSERS:
            parsed[line["row"]].append(line["parsed"])

    def store_lines(transaction: Session) -> None:
        add_imported_keys(transaction, parsed["key"])
        add_imported_tombstones(transaction, parsed["tombstone"])
        add_imported_seen_turns(transaction, parsed["seen"])

    try:
        await store.write(store_lines)
    except StatementError as error:
        raise damaged_file_error(path, "tombstones", type(error).__name__) from None
    erased = Counter[str]()
    for scope in dict.fromkeys(scope for scope, _ in parsed["tombstone"]):
        erased.update((await erase_in_scope(store, scope, erase_by_tombstones, at=at)).erased)
    return len(parsed["tombstone"]), erased


async def count_forbidden_rows(store: Store, scopes: Iterable[Scope], *, at: datetime) -> Counter[str]:
    """Return how many rows of each kind in `_COUNTED` the tombstones of these scopes would erase or blank."""
    rows = Counter[str]()
    for scope in scopes:
        receipt = await erase_in_scope(store, scope, erase_by_tombstones, at=at, is_preview=True)
        for counts in (receipt.erased, receipt.blanked):
            rows.update({name: counts[name] for name in _COUNTED if counts.get(name)})
    return rows


def erase_by_tombstones(erasure: Erasure) -> None:
    """Erase everything in the scope of an erasure that the tombstones of the scope forbid."""
    changed: ChangedTurns = {}
    for session in erasure.sessions():
        changed |= _erase_in_session(erasure, session)
    forgotten = read_forgotten_content(erasure.transaction, erasure.scope)
    query = select(AssertionRow.id).where(AssertionRow.scope_id == erasure.scope_id)
    for ids in chunks(list(erasure.transaction.exec(query))):
        assertions = lookup.assertions_by_id(erasure.transaction, erasure.scope, ids).values()
        erasure.erase_statements(
            [
                said.id
                for said in assertions
                if forgotten.is_assertion_forgotten(said) or not has_unchanged_quotes(said, changed)
            ]
        )
    erasure.erase_findings(lambda row: is_finding_forgotten(forgotten, row.statement, row.said_at))


def has_unchanged_quotes(assertion: Assertion, changed: Mapping[tuple[str, int], str]) -> bool:
    """Return whether every quote of an assertion is still contained in its turn, given the changed turns."""
    for evidence in assertion.evidence:
        text = changed.get((evidence.session_id or "", evidence.turn or 0))
        if text is not None and evidence.quote not in text:
            return False
    return True


def changed_turns(session_id: str, before: Sequence[Turn], after: Sequence[Turn]) -> ChangedTurns:
    """Return the new texts of the turns of a session that differ from before."""
    pairs = zip(before, after, strict=True)
    return {(session_id, new.number): new.text for old, new in pairs if old.text != new.text}


def _erase_in_session(erasure: Erasure, session: SessionKeys) -> ChangedTurns:
    """Erase what the tombstones of a session forbid, and return the new texts of its blanked turns."""
    forgotten = read_forgotten_content(erasure.transaction, erasure.scope, session.session_id)
    if not forgotten.touches_session:
        return {}
    before = turns_by_session_pk(erasure.transaction, session.key)
    after = forgotten.blank_in_turns(before)
    if forgotten.is_session_or_scope_forgotten and before and all(turn.text == FORGOTTEN for turn in after):
        erasure.erase_session(session, forgotten.session_or_scope_forgotten_until)
        return {}
    erasure.blanking_of(session).blank_turns(forgotten, before, after)
    return changed_turns(session.session_id, before, after)


def _read_tombstone_lines(path: Path) -> Iterator[Line]:
    number = 0
    for number, _, line in read_lines(path, parse_forgotten_content_line):
        if number == 1 and (line.get("format"), line.get("version")) not in ((FORMAT, VERSION), EXPORT):
            raise FileInvalid(
                f"{path} holds no tombstones of version {VERSION}; `forget --tombstones` writes such a file"
            )
        yield line
    if not number:
        raise FileInvalid(f"{path} is empty; `forget --tombstones` writes a file of tombstones")


def parse_forgotten_content_line(line: Line) -> Line:
    """Parse a line about forgotten content (a key, a tombstone or seen turns), and add the result as "parsed" to it.

    Other lines are returned unchanged. Raises `FileInvalid` if the line cannot be read.
    """
    if line["row"] not in _PARSERS:
        return line
    try:
        return {**line, "parsed": _PARSERS[line["row"]](line)}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise FileInvalid(f"the fields of a line of kind {line['row']} do not fit") from None
