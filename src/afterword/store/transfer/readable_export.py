"""Writes the facts and the stored turns of a scope for people to read, as Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from sqlmodel import Session, col, select

from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Turn
from afterword.json_form import iso_instant
from afterword.store.rows import turn_of
from afterword.store.scope_rows import scope_key
from afterword.store.tables import SessionRow, TurnRow
from afterword.store.transfer.fact_formats import fact_json, facts_as_markdown

PAGE = 200
"""How many turns are held in memory at once."""
_NOBODY_SAID = (str(Role.SYSTEM), str(Role.MEMORY))
"""The roles of turns that are not exported: instructions of the application, and notes from the memory itself."""


def write_as_markdown(transaction: Session, scope: Scope, facts: Sequence[Fact], file: TextIO) -> None:
    """Write the facts of a scope, and its turns by session, as Markdown."""
    file.write(facts_as_markdown(scope, facts))
    former: str | None = None
    for session_id, turn in _read_turns(transaction, scope):
        if former is None:
            file.write("\n## What was said\n")
        if session_id != former:
            file.write(f"\n### Session {' '.join(session_id.split())}\n\n")
            former = session_id
        day = f"{turn.said_at:%Y-%m-%d} " if turn.said_at else ""
        file.write(f'- {day}{" ".join(turn.speaker.split())}: "{" ".join(turn.text.split())}"\n')


def write_as_json(transaction: Session, scope: Scope, facts: Sequence[Fact], file: TextIO) -> None:
    """Write the facts of a scope, and its turns by session, as one JSON object."""
    listed = json.dumps([fact_json(fact) for fact in facts], ensure_ascii=False, indent=1)
    file.write(f'{{\n"scope": {json.dumps(str(scope), ensure_ascii=False)},\n"facts": {listed},\n"turns": [')
    separator = "\n"
    for session_id, turn in _read_turns(transaction, scope):
        file.write(f"{separator} {json.dumps(_turn_json(session_id, turn), ensure_ascii=False)}")
        separator = ",\n"
    file.write("\n]\n}\n")


def _turn_json(session_id: str, turn: Turn) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "turn": turn.number,
        "speaker": turn.speaker,
        "role": str(turn.role),
        "said_at": iso_instant(turn.said_at),
        "text": turn.text,
    }


def _read_turns(transaction: Session, scope: Scope) -> Iterator[tuple[str, Turn]]:
    """Yield the turns of a scope, each with the id of its session, the oldest session first."""
    query = (
        select(SessionRow.session_id, TurnRow)
        .join(TurnRow, col(TurnRow.session_pk) == col(SessionRow.id))
        .where(SessionRow.scope_id == scope_key(transaction, scope), col(TurnRow.role).not_in(_NOBODY_SAID))
        .order_by(col(SessionRow.started_at), col(SessionRow.id), col(TurnRow.number))
        .execution_options(yield_per=PAGE)
    )
    for session_id, row in transaction.exec(query):
        yield session_id, turn_of(row)
        transaction.expunge(row)
