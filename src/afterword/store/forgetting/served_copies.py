"""Erases copies of forgotten words that agents were served or repeated: in blocks, tool results and replies.

A block is always emptied as a whole, since the next turn of a resumed session writes it anew.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlmodel import Session, col, select

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.blanking import FORGOTTEN, SHORTEST_VALUE, PhraseSearch, Span, letters_and_digits
from afterword.recall.block import CLOSING, OPENING, hashed_scope_label
from afterword.store.database.statements import fetch_where_in
from afterword.store.findings.finding_rows import finding_rows_of_scope
from afterword.store.forgetting.erasable_tables import SessionKeys
from afterword.store.forgetting.row_blanking import FindSpans
from afterword.store.ledger import session_run_source
from afterword.store.scope_rows import scope_of_row
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RunRow,
    ScopeRow,
    SessionRow,
    StateRow,
    TurnRow,
)

_BLOCK = re.compile(
    rf"{re.escape(OPENING)}(?P<label>[^>\n]{{0,200}})>(?P<content>.*?)(?:{re.escape(CLOSING)}|\Z)", re.DOTALL
)
_SENTENCE = re.compile(r"[^.!?\n]+")
_LONG_SENTENCE_WORDS = 4
PAGE = 200
"""How many saved states or transcripts are read at once."""


@dataclass(slots=True)
class ErasedWords:
    """The words of erased statements and turns, collected before their rows are deleted."""

    statements: set[str] = field(default_factory=set)
    sentences: set[str] = field(default_factory=set)
    findings: set[str] = field(default_factory=set)

    def add_statements(self, transaction: Session, ids: Sequence[str]) -> None:
        """Add the values, sentences and quotes of these statements."""
        self.statements |= _texts_of_statements(transaction, fetch_where_in(transaction, AssertionRow, "id", ids))

    def add_findings(self, rows: Iterable[Any]) -> None:
        """Add the statements and quotes of these findings."""
        self.findings.update(*map(_texts_of_finding, rows))

    def add_turns(self, turns: Iterable[Turn]) -> None:
        """Add the longer sentences that people said in these turns."""
        by_people = (turn.text for turn in turns if turn.role is Role.HUMAN)
        sentences = (part.strip() for text in by_people for part in _SENTENCE.findall(text))
        self.sentences.update(part for part in sentences if len(part.split()) >= _LONG_SENTENCE_WORDS)

    def build_search(self, transaction: Session, scope_id: int) -> PhraseSearch:
        """Return a search for the erased words, without words that remaining statements or findings contain too."""
        remaining = fetch_where_in(transaction, AssertionRow, "scope_id", [scope_id] if self.statements else ())
        said_still = set(map(letters_and_digits, _texts_of_statements(transaction, remaining)))
        findings = finding_rows_of_scope(transaction, scope_id) if self.findings else ()
        found_still = {letters_and_digits(text) for row in findings for text in _texts_of_finding(row)}
        found_only = {text for text in self.findings if letters_and_digits(text) not in found_still}
        return PhraseSearch(
            text
            for text in (*self.statements, *self.sentences, *found_only)
            if len(letters := letters_and_digits(text)) >= SHORTEST_VALUE and letters not in said_still
        )


def finding_repeats_words(row: Any, words: PhraseSearch) -> bool:
    """Return whether a finding of an agent contains any of these words."""
    return any(map(words.letter_spans, (*_texts_of_finding(row), row.topic, row.source or "")))


def _texts_of_finding(row: Any) -> set[str]:
    return {row.statement, *(piece["quote"] for piece in row.evidence)}


def _texts_of_statements(transaction: Session, rows: Sequence[AssertionRow]) -> set[str]:
    evidence = fetch_where_in(transaction, EvidenceRow, "assertion_id", [row.id for row in rows])
    return {text for row in rows for text in (row.value, row.statement)} | {cited.quote for cited in evidence}


def sessions_elsewhere_with_blocks(
    transaction: Session, scope: Scope, scope_id: int
) -> list[tuple[Scope, SessionKeys]]:
    """Return the sessions of other scopes that hold a block of this scope, each with its scope.

    The block may stand in a turn, in the saved state, or in the transcript of a dry run.
    """
    label = hashed_scope_label(scope)
    of_turns = select(TurnRow.session_pk).where(col(TurnRow.text).contains(label, autoescape=True))
    of_states = _keys_of_rows_with_label(transaction, StateRow.session_pk, StateRow.content, label)
    stored = fetch_where_in(transaction, SessionRow, "id", {*transaction.exec(of_turns.distinct()), *of_states})
    runs = fetch_where_in(
        transaction, RunRow, "id", _keys_of_rows_with_label(transaction, RunRow.id, RunRow.transcript, label)
    )
    sessions = {SessionKeys(row.scope_id, row.id, row.session_id) for row in stored} | {
        SessionKeys(run.scope_id, run.session_pk or 0, run.source.removeprefix(session_run_source(""))) for run in runs
    }
    others = transaction.exec(select(ScopeRow).where(ScopeRow.id != scope_id))
    scopes = {row.id: scope_of_row(row) for row in others}
    in_order = sorted(sessions, key=lambda session: (session.scope_id, session.key))
    return [(scopes[session.scope_id], session) for session in in_order if session.scope_id in scopes]


def _keys_of_rows_with_label(transaction: Session, key: Any, content: Any, label: str) -> Iterator[int]:
    """Yield the keys of the rows whose compressed content contains a label. Only `PAGE` rows are read at a time."""
    query = select(key, content).where(col(content).is_not(None)).order_by(col(key))
    for row_key, packed in transaction.exec(query.execution_options(yield_per=PAGE)):
        if label.encode() in zlib.decompress(packed):
            yield row_key


def block_and_word_finder(scope: Scope | None = None, words: PhraseSearch | None = None) -> FindSpans:
    """Return a function that finds these words and the contents of blocks, of one scope or of all scopes."""
    search = words or PhraseSearch()
    label = hashed_scope_label(scope) if scope else ""
    return lambda text: search.letter_spans(text, _spans_in_blocks(text, label))


def _spans_in_blocks(text: str, label: str) -> Iterator[Span]:
    """Yield the spans of the contents of the blocks in a text, except of blocks that are already empty."""
    for block in _BLOCK.finditer(text) if OPENING in text else ():
        is_empty = not any(map(str.isalnum, block["content"].replace(FORGOTTEN, "")))
        if label in block["label"] and not is_empty:
            yield block.span("content")
