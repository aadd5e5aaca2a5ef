"""Blanks forgotten words in texts that are otherwise kept: turns, saved states, quotes, and reasons of verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import update
from sqlmodel import Session, SQLModel, col, select

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.blanking import (
    FORGOTTEN,
    SHORTEST_VALUE,
    PhraseSearch,
    Span,
    WordsToBlank,
    blank_spans,
    letters_and_digits,
)
from afterword.privacy.state_blanking import blank_saved_state, keep_json_valid
from afterword.privacy.tombstones import ForgottenContent, Tombstone, TombstoneKey, TombstoneKind
from afterword.store.database.statements import fetch_where_in
from afterword.store.forgetting.erasable_tables import SESSION_CLAUSES, SessionKeys
from afterword.store.rows import (
    derived_turn_values,
    pack_state,
    pack_transcript,
    turn_of,
    unpack_state,
    unpack_transcript,
)
from afterword.store.sessions import turns_by_session_pk
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
_REPEATING_COLUMNS: Mapping[type[SQLModel], Sequence[str]] = {
    RejectionRow: ("statement", "detail"),
    VerdictRow: ("reason", "remainder"),
    SessionRow: ("failure",),
}
"""Columns that repeat words of a session."""
_STATEMENT_COLUMNS = ("statement", "limited_to", "outcome", "tags", "former_name")
T = TypeVar("T", bound=SQLModel)

FindSpans = Callable[[str], Sequence[Span]]
"""A function that finds the spans of a text to blank."""


@dataclass(frozen=True, slots=True)
class ForgottenWords:
    """The words of forgotten statements. `quotes` and `values` are blanked in their session, by session id.

    Quotes and values that were said in no session stand under the id "". They are blanked only as far as they are also
    in `long_texts` or `recognisable_values`.
    `long_texts` holds longer quotes and sentences. `recognisable_values` holds values such as names, which are
    recognisable in any text. Both are blanked in every session.
    """

    quotes: Mapping[str, Collection[str]]
    long_texts: Collection[str]
    values: Mapping[str, Collection[str]] = field(default_factory=dict)
    recognisable_values: Collection[str] = ()

    @classmethod
    def of_texts(cls, quotes: Mapping[str, Collection[str]], sentences: Iterable[str]) -> ForgottenWords:
        """Return the words to blank: these quotes by session, and the longer quotes and sentences in every session."""
        texts = {*sentences, *(quote for of_session in quotes.values() for quote in of_session)}
        return cls(quotes, {text for text in texts if len(text.split()) >= _LONG_QUOTE_WORDS})

    @classmethod
    def of_statements(cls, transaction: Session, statements: Mapping[str, AssertionRow]) -> ForgottenWords:
        """Return the words to blank of these statements, which are given by their ids."""
        quotes, values = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for evidence in fetch_where_in(transaction, EvidenceRow, "assertion_id", statements):
            quotes[evidence.session_id or ""].add(evidence.quote)
            values[evidence.session_id or ""].add(statements[evidence.assertion_id].value)
        return replace(
            cls.of_texts(quotes, (row.statement for row in statements.values())),
            values={session_id: set(filter(_is_long_enough, texts)) for session_id, texts in values.items()},
            recognisable_values={row.value for row in statements.values() if _is_recognisable(row.value)},
        )


def _is_long_enough(value: str) -> bool:
    return len(letters_and_digits(value)) >= SHORTEST_VALUE


def _is_recognisable(value: str) -> bool:
    """Return whether a value is recognisable in any text: it is long, or has several words, a capital or a digit."""
    is_name = any(letter.isupper() or letter.isdigit() for letter in value)
    is_long = len(value.split()) > 1 or len(value) >= _LONG_VALUE
    return _is_long_enough(value) and (is_name or is_long)


class RowBlanking:
    """Blanks forgotten words in the rows of one session, and collects tombstones for the texts that it blanks.

    The tombstones blank the same words when the session is saved or read again. `at` is when the words were forgotten;
    what was said later is kept. `counts` counts the changed rows by table.
    """

    def __init__(
        self,
        transaction: Session,
        scope: Scope,
        session: SessionKeys,
        key: TombstoneKey,
        at: datetime,
        counts: Counter[str],
    ) -> None:
        self._transaction, self._scope, self._session, self._key = transaction, scope, session, key
        self._at, self._counts = at, counts
        self._times: Counter[tuple[str, tuple[Span, ...]]] = Counter()

    @property
    def tombstones(self) -> list[Tombstone]:
        """Return the tombstones of the blanked texts."""
        place = self._key.session_hash(self._scope, self._session.session_id)
        return [
            Tombstone(TombstoneKind.TEXT, self._key.id, place, mark, self._at, spans, times)
            for (mark, spans), times in self._times.items()
        ]

    def blank_words(self, forgotten: ForgottenWords) -> None:
        """Blank forgotten words in all rows of the session."""
        query = select(AssertionRow, EvidenceRow).where(
            col(AssertionRow.id) == col(EvidenceRow.assertion_id),
            AssertionRow.scope_id == self._session.scope_id,
            EvidenceRow.session_id == self._session.session_id,
        )
        remaining = self._transaction.exec(query).all()
        values = PhraseSearch((*forgotten.values.get(self._session.session_id, ()), *forgotten.recognisable_values))
        unchanged_ids = _unchanged_ids((said for said, _ in remaining), values, self._at)
        words = WordsToBlank(
            quotes=PhraseSearch((*forgotten.quotes.get(self._session.session_id, ()), *forgotten.long_texts)),
            values=values,
            quotes_to_keep=PhraseSearch(evidence.quote for _, evidence in remaining),
            values_to_keep=PhraseSearch(evidence.quote for said, evidence in remaining if said.id in unchanged_ids),
        )
        self._blank_conversation(words.letter_spans)
        self._blank_statements([(said, cited) for said, cited in remaining if said.id not in unchanged_ids], words)
        self._blank_repeating_columns(WordsToBlank(words.quotes, words.values).letter_spans)

    def blank_spans_sparing_people(self, find_spans: FindSpans) -> None:
        """Blank the spans that `find_spans` finds in all rows of the session, except in what people said in it."""
        by_people = [
            turn.text for turn in turns_by_session_pk(self._transaction, self._session.key) if turn.role is Role.HUMAN
        ]
        said_by_people = "\n".join(map(letters_and_digits, by_people))

        def spans_of_copies(text: str) -> Sequence[Span]:
            spans = find_spans(text)
            return [] if spans and letters_and_digits(text) in said_by_people else spans

        self._blank_conversation(spans_of_copies, spares_people=True)
        self._blank_repeating_columns(find_spans)

    def blank_turns(self, forgotten: ForgottenContent, before: Sequence[Turn], after: Sequence[Turn]) -> None:
        """Replace the turns `before` by the blanked turns `after`, also in the saved state and the dry runs."""
        replacements = {old.text: new.text for old, new in zip(before, after, strict=True) if old.text != new.text}
        by_number = {turn.number: turn.text for turn in after}
        self._change_turns(lambda turn: by_number.get(turn.number, turn.text))
        self._change_state(lambda state: forgotten.blank_in_state(state, before, after))
        self._change_transcripts(lambda turn: replacements.get(turn.text, turn.text))
        refused = update(RejectionRow).where(SESSION_CLAUSES[RejectionRow](self._session))
        self._transaction.connection().execute(refused.values(statement=FORGOTTEN, detail=""))

    def _blank_conversation(self, find_spans: FindSpans, *, spares_people: bool = False) -> None:
        """Blank spans in the turns, in the saved state and in dry runs, and note a tombstone for each changed text."""

        def blank(text: str, times: int = 0) -> str:
            spans = find_spans(text)
            if spans:
                self._times[self._key.text_hash(self._scope, self._session.session_id, text), tuple(spans)] += times
            return blank_spans(text, spans)

        def blank_turn(turn: Turn, times: int = 0) -> str:
            return turn.text if spares_people and turn.role is Role.HUMAN else blank(turn.text, times)

        self._change_turns(lambda turn: blank_turn(turn, times=int(turn.is_said)))
        self._change_state(lambda state: blank_saved_state(state, lambda text: keep_json_valid(text, blank(text))))
        self._change_transcripts(blank_turn)

    def _rows(self, table: type[T]) -> Sequence[T]:
        return self._transaction.exec(select(table).where(SESSION_CLAUSES[table](self._session))).all()

    def _change_turns(self, new_text: Callable[[Turn], str]) -> None:
        for row in self._rows(TurnRow):
            turn = turn_of(row)
            text = new_text(turn)
            if text != row.text:
                self._change(row, {"text": text, **derived_turn_values(replace(turn, text=text))})

    def _change_state(self, new_state: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        for row in self._rows(StateRow):
            state = unpack_state(row.content)
            blanked = new_state(state)
            if blanked != state:
                self._change(row, {"content": pack_state(blanked)})

    def _change_transcripts(self, new_text: Callable[[Turn], str]) -> None:
        """Change the texts of turns in the transcripts of dry runs."""
        for row in self._rows(RunRow):
            if row.transcript is not None:
                transcript = unpack_transcript(row.transcript)
                turns = tuple(replace(turn, text=new_text(turn)) for turn in transcript.turns)
                if turns != transcript.turns:
                    self._change(row, {"transcript": pack_transcript(replace(transcript, turns=turns))})

    def _blank_repeating_columns(self, find_spans: FindSpans) -> None:
        """Blank spans in rejected candidates, in verdicts on the session's statements, and in why it failed."""
        for table, columns in _REPEATING_COLUMNS.items():
            for row in self._rows(table):
                self._blank_columns(row, columns, find_spans)

    def _blank_statements(self, statements: Sequence[tuple[AssertionRow, EvidenceRow]], words: WordsToBlank) -> None:
        """Blank words in remaining statements and their quotes, and update the positions of the quotes in the turns."""
        # In a remaining quote only the forgotten value is blanked, not words that it shares with a forgotten quote.
        words_of_quotes = replace(words, quotes=PhraseSearch())
        words_of_statements = replace(words, quotes_to_keep=PhraseSearch())
        for _, evidence in statements:
            self._blank_columns(evidence, ["quote"], words_of_quotes.letter_spans)
            evidence.start = self._start_of_quote(evidence)
        for said in {said.id: said for said, _ in statements}.values():
            former_name = said.former_name
            self._blank_columns(said, _STATEMENT_COLUMNS, words_of_statements.letter_spans)
            if said.former_name != former_name:
                said.former_name = None  # all blanked names are equal, and equal names would join their subjects
        self._transaction.flush()

    def _start_of_quote(self, evidence: EvidenceRow) -> int | None:
        """Return the position of a quote in the present text of its turn, or the former position if it is not there."""
        query = select(TurnRow.text).where(TurnRow.session_pk == self._session.key, TurnRow.number == evidence.turn)
        text = self._transaction.exec(query).first()
        start = text.find(evidence.quote) if text is not None else -1
        return start if start >= 0 else evidence.start

    def _blank_columns(self, row: SQLModel, columns: Sequence[str], find_spans: FindSpans) -> None:
        texts = {name: getattr(row, name) for name in columns}
        self._change(row, {name: text and blank_spans(text, find_spans(text)) for name, text in texts.items()})

    def _change(self, row: SQLModel, values: dict[str, Any]) -> None:
        """Change a row and count it, unless it has these values already."""
        if any(getattr(row, name) != value for name, value in values.items()):
            self._counts[str(row.__tablename__)] += 1
            row.sqlmodel_update(values)
            self._transaction.flush()  # `expunge_all` would discard the change otherwise


def _unchanged_ids(remaining: Iterable[AssertionRow], values: PhraseSearch, at: datetime) -> set[str]:
    """Return the ids of the statements that stay unchanged: they mention a forgotten value, or were said after `at`."""
    return {said.id for said in remaining if said.said_at > at or values.letter_spans(said.value)}
