"""Blanks forgotten words in texts that are otherwise kept: turns, saved states, quotes, and reasons of verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import update
from sqlmodel import Session, SQLModel, col, select

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Turn
from afterword.privacy.blanking import (
    FORGOTTEN,
    SHORTEST_VALUE,
    PhraseSearch,
    Span,
    WordsToBlank,
    blank_spans,
    letters_and_digits,
)
from afterword.privacy.state_blanking import blank_strings, keep_json_valid
from afterword.privacy.tombstones import Forgotten, Tombstone, TombstoneKey, TombstoneKind
from afterword.store.database.statements import fetch_where_in
from afterword.store.forgetting.text_columns import OF_SESSION, SessionKeys
from afterword.store.rows import (
    derived_turn_values,
    pack_state,
    pack_transcript,
    turn_of,
    unpack_state,
    unpack_transcript,
)
from afterword.store.sessions import turns_of
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RejectionRow,
    RunRow,
    SessionRow,
    StateRow,
    TurnRow,
    VerdictRow,
)

_LONG_QUOTE_WORDS = 3
_LONG_VALUE = 7
"""A value of at least this many letters is blanked in every session, even without a capital letter or a digit."""
_NOTES: Mapping[type[SQLModel], Sequence[str]] = {
    RejectionRow: ("statement", "detail"),
    VerdictRow: ("reason", "remainder"),
    SessionRow: ("failure",),
}
"""Columns that repeat words of a session."""
_STATEMENT_COLUMNS = ("statement", "limited_to", "outcome", "tags", "former_name")
T = TypeVar("T", bound=SQLModel)
BlankText = Callable[[str], str]
BlankTurn = Callable[[Turn], str]
"""A function that returns the text of a turn with the forgotten words blanked."""


@dataclass(frozen=True, slots=True)
class ForgottenWords:
    """The words of forgotten statements. `quotes` and `values` are blanked in their session, by session id.

    `anywhere` holds longer quotes and sentences, and `telling_values` values such as names that are recognisable in any
    text. Both are blanked in every session.
    """

    quotes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    anywhere: tuple[str, ...] = ()
    telling_values: tuple[str, ...] = ()

    @classmethod
    def of_texts(cls, quotes: Mapping[str, Iterable[str]], sentences: Iterable[str]) -> ForgottenWords:
        """Return the words to blank: these quotes by session, and the longer quotes and sentences in every session."""
        anywhere = {*sentences, *(quote for texts in quotes.values() for quote in texts)}
        return cls(
            {session_id: tuple(sorted(texts)) for session_id, texts in quotes.items()},
            anywhere=tuple(sorted(text for text in anywhere if len(text.split()) >= _LONG_QUOTE_WORDS)),
        )

    @classmethod
    def of(cls, transaction: Session, statements: Mapping[str, AssertionRow]) -> ForgottenWords:
        """Return the words to blank of these statements, which are given by their ids."""
        quotes: dict[str, set[str]] = {}
        values: dict[str, set[str]] = {}
        anywhere = {row.statement for row in statements.values()}
        for evidence in fetch_where_in(transaction, EvidenceRow, "assertion_id", statements):
            anywhere.add(evidence.quote)
            if evidence.session_id is not None:
                quotes.setdefault(evidence.session_id, set()).add(evidence.quote)
                value = statements[evidence.assertion_id].value
                if len(letters_and_digits(value)) >= SHORTEST_VALUE:
                    values.setdefault(evidence.session_id, set()).add(value)
        return cls(
            {session_id: tuple(sorted(texts)) for session_id, texts in quotes.items()},
            {session_id: tuple(sorted(texts)) for session_id, texts in values.items()},
            tuple(sorted(text for text in anywhere if len(text.split()) >= _LONG_QUOTE_WORDS)),
            tuple(sorted({row.value for row in statements.values() if _is_telling(row.value)})),
        )


def _is_telling(value: str) -> bool:
    """Return whether a value is recognisable in any text: it is long, or has several words, a capital or a digit."""
    is_name = any(letter.isupper() or letter.isdigit() for letter in value)
    is_long = len(value.split()) > 1 or len(value) >= _LONG_VALUE
    return len(letters_and_digits(value)) >= SHORTEST_VALUE and (is_name or is_long)


def blank_session(
    transaction: Session,
    scope: Scope,
    session: SessionKeys,
    forgotten: ForgottenWords,
    key: TombstoneKey,
    at: datetime,
    counts: Counter[str],
) -> list[Tombstone]:
    """Blank forgotten words in all rows of a session, and return the tombstones that blank them at the next reading.

    `at` is when the words were forgotten; what was said later is kept. The changed rows are counted by table in
    `counts`.
    """
    query = select(AssertionRow, EvidenceRow).where(
        col(AssertionRow.id) == col(EvidenceRow.assertion_id),
        AssertionRow.scope_id == session.scope_id,
        EvidenceRow.session_id == session.session_id,
    )
    remaining = transaction.exec(query).all()
    values = PhraseSearch((*forgotten.values.get(session.session_id, ()), *forgotten.telling_values))
    unchanged_ids = _ids_of_unchanged((said for said, _ in remaining), values, at)
    words = WordsToBlank(
        quotes=PhraseSearch((*forgotten.quotes.get(session.session_id, ()), *forgotten.anywhere)),
        values=values,
        quotes_to_keep=PhraseSearch(evidence.quote for _, evidence in remaining),
        values_to_keep=PhraseSearch(evidence.quote for said, evidence in remaining if said.id in unchanged_ids),
    )
    rows, tombstones = SessionRows(transaction, session, counts), TextTombstones(scope, session, key, at)

    def blank_string(text: str) -> str:
        return keep_json_valid(text, tombstones.blank(text, words.spans(text), times=0))

    rows.blank_turns(lambda turn: tombstones.blank(turn.text, words.spans(turn.text), times=int(turn.is_said)))
    rows.blank_state(lambda state: blank_strings(state, blank_string))
    rows.blank_transcripts(lambda turn: blank_string(turn.text))
    changed = [(said, evidence) for said, evidence in remaining if said.id not in unchanged_ids]
    _blank_statements(rows, changed, words)
    rows.blank_notes(WordsToBlank(words.quotes, words.values).blank)
    return tombstones.all()


def _ids_of_unchanged(remaining: Iterable[AssertionRow], values: PhraseSearch, at: datetime) -> set[str]:
    """Return the ids of the statements that stay unchanged: they mention a forgotten value, or were said after `at`."""
    return {said.id for said in remaining if said.said_at > at or values.spans(said.value)}


def blank_turns_before(
    transaction: Session,
    scope: Scope,
    session: SessionKeys,
    tombstones: Sequence[Tombstone],
    key: TombstoneKey,
    counts: Counter[str],
) -> None:
    """Blank the turns of a session that these tombstones cover, also in its saved state and its dry runs."""
    forgotten = Forgotten(scope, session.session_id, [key], tombstones)
    turns = turns_of(transaction, session.key)
    blank_turns(transaction, session, forgotten, turns, forgotten.turns(turns), counts)


def blank_turns(
    transaction: Session,
    session: SessionKeys,
    forgotten: Forgotten,
    before: Sequence[Turn],
    after: Sequence[Turn],
    counts: Counter[str],
) -> None:
    """Replace the turns `before` by the blanked turns `after`, also in the saved state and the dry runs."""
    replacements = {old.text: new.text for old, new in zip(before, after, strict=True) if old.text != new.text}
    rows = SessionRows(transaction, session, counts)
    by_number = {turn.number: turn.text for turn in after}
    rows.blank_turns(lambda turn: by_number.get(turn.number, turn.text))
    rows.blank_state(lambda state: forgotten.state(state, before, after))
    rows.blank_transcripts(lambda turn: replacements.get(turn.text, turn.text))
    refused = update(RejectionRow).where(OF_SESSION[RejectionRow](session)).values(statement=FORGOTTEN, detail="")
    transaction.connection().execute(refused)


class TextTombstones:
    """Blanks texts of one session and collects tombstones for them."""

    def __init__(self, scope: Scope, session: SessionKeys, key: TombstoneKey, at: datetime) -> None:
        self._scope, self._session_id, self._key, self._at = scope, session.session_id, key, at
        self._times: Counter[tuple[str, tuple[Span, ...]]] = Counter()

    def blank(self, text: str, spans: Sequence[Span], *, times: int) -> str:
        """Return the text with these spans blanked, and add a tombstone for it. `times` is how often a turn had it."""
        if not spans:
            return text
        self._times[self._key.text_hash(self._scope, self._session_id, text), tuple(spans)] += times
        return blank_spans(text, spans)

    def all(self) -> list[Tombstone]:
        """Return the tombstones of all blanked texts."""
        place = self._key.session_hash(self._scope, self._session_id)
        return [
            Tombstone(TombstoneKind.TEXT, self._key.id, place, mark, self._at, spans, times)
            for (mark, spans), times in self._times.items()
        ]


@dataclass(frozen=True, slots=True)
class SessionRows:
    """The rows of one session, to blank words in them. `counts` counts the changed rows by table."""

    transaction: Session
    session: SessionKeys
    counts: Counter[str]

    def of(self, table: type[T]) -> Sequence[T]:
        """Return the rows of the session in a table."""
        return self.transaction.exec(select(table).where(OF_SESSION[table](self.session))).all()

    def blank_turns(self, blank: BlankTurn) -> None:
        """Replace the text of each turn by what `blank` returns."""
        for row in self.of(TurnRow):
            turn = turn_of(row)
            text = blank(turn)
            if text != row.text:
                self.change(row, {"text": text, **derived_turn_values(replace(turn, text=text))})

    def blank_state(self, blank: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Replace the saved state by what `blank` returns."""
        for row in self.of(StateRow):
            state = unpack_state(row.content)
            blanked = blank(state)
            if blanked != state:
                self.change(row, {"content": pack_state(blanked)})

    def blank_transcripts(self, blank: BlankTurn) -> None:
        """Replace the text of each turn in the transcripts of dry runs by what `blank` returns."""
        for row in self.of(RunRow):
            if row.transcript is not None:
                transcript = unpack_transcript(row.transcript)
                turns = tuple(replace(turn, text=blank(turn)) for turn in transcript.turns)
                if turns != transcript.turns:
                    self.change(row, {"transcript": pack_transcript(replace(transcript, turns=turns))})

    def blank_notes(self, blank: BlankText) -> None:
        """Blank words in rejected candidates, in verdicts on the session's statements, and in why it failed."""
        for table, columns in _NOTES.items():
            for row in self.of(table):
                self.blank_columns(row, columns, blank)

    def blank_columns(self, row: SQLModel, columns: Sequence[str], blank: BlankText) -> None:
        """Blank words in these columns of a row."""
        texts = {name: getattr(row, name) for name in columns}
        self.change(row, {name: text and blank(text) for name, text in texts.items()})

    def change(self, row: SQLModel, values: dict[str, Any]) -> None:
        """Change a row and count it, unless it has these values already."""
        if any(getattr(row, name) != value for name, value in values.items()):
            self.counts[str(row.__tablename__)] += 1
            row.sqlmodel_update(values)
            self.transaction.flush()  # `expunge_all` would discard the change otherwise


def _blank_statements(
    rows: SessionRows, remaining: Sequence[tuple[AssertionRow, EvidenceRow]], words: WordsToBlank
) -> None:
    """Blank words in remaining statements and their quotes, and update the positions of the quotes in the turns."""
    # In a remaining quote only the forgotten value is blanked, not words that it shares with a forgotten quote.
    words_of_quotes = replace(words, quotes=PhraseSearch())
    words_of_statements = replace(words, quotes_to_keep=PhraseSearch())
    for said, evidence in remaining:
        rows.blank_columns(evidence, ["quote"], words_of_quotes.blank)
        evidence.start = _start_of_quote(rows.transaction, said, evidence)
    for said in {said.id: said for said, _ in remaining}.values():
        former_name = said.former_name
        rows.blank_columns(said, _STATEMENT_COLUMNS, words_of_statements.blank)
        if said.former_name != former_name:
            said.former_name = None  # all blanked names are equal, and equal names would join their subjects
    rows.transaction.flush()


def _start_of_quote(transaction: Session, said: AssertionRow, evidence: EvidenceRow) -> int | None:
    """Return the position of a quote in the present text of its turn, or the former position if it is not there."""
    session = select(SessionRow.id).where(
        SessionRow.scope_id == said.scope_id, SessionRow.session_id == evidence.session_id
    )
    query = select(TurnRow.text).where(col(TurnRow.session_pk).in_(session), TurnRow.number == evidence.turn)
    text = transaction.exec(query).first()
    start = text.find(evidence.quote) if text is not None else -1
    return start if start >= 0 else evidence.start
