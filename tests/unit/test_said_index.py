"""The search of turns: who speaks, and what answers a question."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from afterword.facts.transcripts import SourceTurn
from afterword.facts.words import terms
from afterword.recall.block import SaidTurn
from afterword.recall.bm25 import NO_RELATED, Related
from afterword.recall.said_index import SaidIndex
from afterword.recall.unit_table import UnitTable

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TALK = (
    ("Ada", "What gave you the idea for the pattern of that bowl?"),
    ("Mel", "It came from the waves, and it makes people smile."),
    ("Ada", "Lovely, Mel! Ours is plain."),
    ("Mel", "We went camping in the forest."),
    ("Ada", "Mel, how was the weather?"),
    ("Mel", "Rain, mostly."),
)


@dataclass(frozen=True)
class Unit:
    """A turn as the table wants it."""

    number: int
    speaker: str
    turn: SourceTurn
    conversation: str = "talk"
    sources: tuple[str, ...] = ()
    successor: None = None

    @property
    def id(self) -> int:
        return self.number

    @property
    def terms(self) -> str:
        return f"{self.speaker.lower()}\t{' '.join(terms(self.turn.text))}"

    @property
    def asks(self) -> bool:
        return "?" in self.turn.text

    @property
    def order(self) -> tuple[int]:
        return (self.number,)


def told(question: str, *, hidden: int = 0, related: Related = NO_RELATED) -> list[SaidTurn]:
    units = [
        Unit(number, speaker, SourceTurn("talk", number, speaker, NOON, text))
        for number, (speaker, text) in enumerate(TALK, 1)
    ]
    index = SaidIndex(UnitTable().revised((), units), {})
    return list(
        index.matching_turns(question, at=NOON, is_hidden=lambda turn, words: turn.number == hidden, related=related)
    )


def found(question: str) -> list[int]:
    return [said.turn.number for said in told(question)]


def test_the_answer_is_found_with_the_question_that_it_answers() -> None:
    """None of its words are in the question, so it is told with what it answers."""
    answer = next(said for said in told("Where does the idea for the pattern come from?") if said.turn.number == 2)
    assert answer.context is not None
    assert answer.context.number == 1


def test_a_question_that_must_not_be_told_brings_no_answer() -> None:
    assert told("Where does the idea for the pattern come from?", hidden=1) == []


def test_what_somebody_says_comes_before_what_is_said_to_them() -> None:
    numbers = found("Where did Mel go camping?")
    assert numbers.index(4) < min(number for number in numbers if TALK[number - 1][0] == "Ada")


def test_what_has_no_word_of_the_question_is_not_found() -> None:
    assert found("How do submarines float?") == []


def test_a_related_word_finds_what_has_no_word_of_the_question() -> None:
    related = {"tent": {"camp": 0.6}}
    assert next(said.turn.number for said in told("Any tents?", related=related)) == 4
    assert told("Any tents?", hidden=4, related=related) == []
