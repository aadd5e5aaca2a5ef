"""Collect the sentences that a candidate quotes, and what was said around them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from afterword.extractors.quote_support import QuotedWords
from afterword.extractors.said_words import SaidWords, sentence_around
from afterword.facts.assertions import Evidence
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.foreign.stretches import fill_foreign_stretches, foreign_stretches_by_turn

_TURNS_BEFORE, _TURNS_AFTER, _MOST_TURNS = 300, 50, 3_000
"""How many turns before the first and after the last cited turn are read, and how many from the first one on."""

_SPEAKING = (Role.HUMAN, Role.AGENT, Role.MEMORY)

LETTERS_AROUND = 2_000
"""At least this many characters of a turn before and after a quote are read. A whole long turn would take too long.

The text is cut at multiples of this number. So neighbouring quotes share the same text, which is prepared once.
"""


def last_cited_turn(evidence: Sequence[Evidence], turns: Mapping[int, Turn], session_id: str) -> tuple[Turn, datetime]:
    """Return the last cited turn and its time. Raises ValueError if the turn has no time."""
    last = turns[evidence[-1].turn or 0]
    if last.said_at is None:
        raise ValueError(f"session {session_id!r}: turn {last.number} has no time; date the transcript first")
    return last, last.said_at


def _quote_in_sentence(cited: Evidence, text: str) -> tuple[str, str, str]:
    """Return the words before a quote in its sentence, the quote, and the words after it."""
    start = cited.start or 0
    return sentence_around(text, start, start + len(cited.quote))


class CitedConversation:
    """The cited turns of a transcript and the turns around them. `people` are the names of people and of the owner."""

    def __init__(self, turns: Mapping[int, Turn], cited: Sequence[int], *, people: Iterable[str]) -> None:
        self._turns, self._names = turns, "\n".join(people)
        self._cited = [number for number in cited if number in turns]
        self._words_by_text: dict[str, SaidWords] = {}

    def quoted_words(self, evidence: Sequence[Evidence], accepted_in: int | None = None) -> QuotedWords:
        """Return the sentences that the evidence quotes, and what was said around them.

        In turn `accepted_in`, if it is given, a person accepts the quoted words of an agent.
        """
        turns = [self._turns[cited.turn or 0] for cited in evidence]
        quotes = [_quote_in_sentence(cited, turn.text) for cited, turn in zip(evidence, turns, strict=True)]
        sentences = ["".join(quote).strip() for quote in quotes]
        of_person = [(turn, text) for turn, text in zip(turns, sentences, strict=True) if turn.role is Role.HUMAN]
        of_agent = [text for turn, text in zip(turns, sentences, strict=True) if turn.role is not Role.HUMAN]
        around = self._texts_around(evidence)
        speakers = [self._turns[number].speaker for number in around]
        nearby = [text for texts in around.values() for text in texts]
        answered = [self._answered_text(number) for number in around]
        return QuotedWords(
            person_sentences=SaidWords("\n".join([*(text for _, text in of_person), *speakers])),
            person_turns=self._prepared_words("\n".join([*nearby, *speakers])),
            agent_sentences=SaidWords("\n".join(of_agent)),
            answered_turns=self._prepared_words("\n".join(answered)),
            last_sentence=of_person[-1][1],
            acceptance="\n".join(text for turn, text in of_person if turn.number == accepted_in),
            people_words=self._people_words,
            everybody_words=self._everybody_words,
            quotes=tuple(quotes),
        )

    def _texts_around(self, evidence: Sequence[Evidence]) -> dict[int, dict[str, None]]:
        """Return the different texts around the quotes of people, by the number of the turn."""
        around: dict[int, dict[str, None]] = {}
        for cited in evidence:
            turn, start = self._turns[cited.turn or 0], cited.start or 0
            if turn.role is Role.HUMAN:
                first, last = start // LETTERS_AROUND - 1, (start + len(cited.quote)) // LETTERS_AROUND + 2
                text = turn.text[max(0, first) * LETTERS_AROUND : last * LETTERS_AROUND]
                around.setdefault(turn.number, {})[text] = None
        return around

    def _answered_text(self, number: int) -> str:
        """Return what an agent said in the turn before this one, or an empty text."""
        before = self._turns.get(number - 1)
        return before.text[-2 * LETTERS_AROUND :] if before and before.role is Role.AGENT else ""

    def _prepared_words(self, text: str) -> SaidWords:
        """Return the prepared words of a text. Each text is prepared only once."""
        return self._words_by_text.setdefault(text, SaidWords(text))

    @cached_property
    def _turns_around(self) -> list[Turn]:
        first, last = min(self._cited, default=1), max(self._cited, default=0)
        numbers = range(first - _TURNS_BEFORE, min(last, first + _MOST_TURNS) + _TURNS_AFTER + 1)
        return [self._turns[number] for number in numbers if number in self._turns]

    @cached_property
    def _people_words(self) -> SaidWords:
        said = [turn.text for turn in self._turns_around if turn.role is Role.HUMAN]
        return SaidWords("\n".join([*said, self._names]))

    @cached_property
    def _everybody_words(self) -> SaidWords:
        said = [f"{turn.speaker}\n{turn.text}" for turn in self._turns_around if turn.role in _SPEAKING]
        return SaidWords("\n".join([*said, self._names]))

    @cached_property
    def own_words_of_everybody(self) -> SaidWords:
        """What anyone said, without pasted or quoted text. A subject is only renamed if both names occur here."""
        turns, numbers = list(self._turns.values()), {turn.number for turn in self._turns_around}
        texts = [
            f"{turn.speaker}\n{fill_foreign_stretches(turn.text, stretches)}"
            for turn, stretches in zip(turns, foreign_stretches_by_turn(turns, numbers=numbers), strict=True)
            if turn.number in numbers and turn.role in _SPEAKING
        ]
        return SaidWords("\n".join([*texts, self._names]))
