"""The search of turns: who speaks, and what answers a question."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from afterword.facts.transcripts import SourceTurn
from afterword.facts.words import terms
from afterword.recall.block import MatchingTurn
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


def told(question: str, *, hidden: int = 0, related: Related = NO_RELATED) -> list[MatchingTurn]:
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


def spoken(*talks: tuple[tuple[str, str], ...], question: str, until: int = 999) -> list[MatchingTurn]:
    """What is found in several talks, each a day after the one before, until a day. The last is stored first."""
    before: dict[str, dict[int, SourceTurn]] = {}
    units: list[Unit] = []
    for day, talk in enumerate(talks):
        of_talk = [
            SourceTurn(f"talk {day}", number, speaker, NOON + timedelta(days=day), text)
            for number, (speaker, text) in enumerate(talk, 1)
        ]
        before[f"talk {day}"] = {later.number: earlier for earlier, later in pairwise(of_talk)}
        units += [Unit(10 * (len(talks) - day) + turn.number, turn.speaker, turn, turn.session_id) for turn in of_talk]
    index = SaidIndex(UnitTable().revised((), units), before)
    return list(index.matching_turns(question, at=NOON + timedelta(days=until), is_hidden=lambda turn, words: False))


ORDER = (("Mel", "What is the status of my order?"),)
CHAIRS = (("Mel", "My order of garden chairs came with a broken armrest."),)


@pytest.mark.parametrize("times", [2, 30, 300])
def test_equal_words_are_found_once_at_their_latest_time(times: int) -> None:
    found = spoken(CHAIRS, *[ORDER] * times, question="Is there news about the order?")
    assert sorted(said.turn.session_id for said in found) == ["talk 0", f"talk {times}"]


def test_equal_words_are_found_as_of_the_day_asked_for() -> None:
    [said] = spoken(*[ORDER] * 5, question="Is there news about the order?", until=2)
    assert said.turn.session_id == "talk 2"


def test_equal_words_of_different_people_or_in_answer_to_other_words_are_both_found() -> None:
    others = (("Ada", "What is the status of my order?"),)
    assert len(spoken(ORDER, others, ORDER, question="Is there news about the order?")) == 2
    window, aisle = (
        (("Ada", f"Shall I book a seat at the {side}?"), ("Mel", "Yes, book it.")) for side in ("window", "aisle")
    )
    found = spoken(window, aisle, window, question="Which seat did Mel book?")
    answers = [said.context.text for said in found if said.turn.speaker == "Mel" and said.context is not None]
    assert sorted(answers) == [aisle[0][1], window[0][1]]
