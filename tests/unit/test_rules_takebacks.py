"""Requests to forget, denials, and what is over: each names the slot of what it takes back, and never states it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import afterword
from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Window
from afterword.extractors.grounding import ground
from afterword.extractors.readers import read_file
from afterword.extractors.rules.extractor import find_candidates
from afterword.extractors.slot_relation import relation_by_slot
from afterword.facts.assertions import Assertion, Cue, Relation, SpeechAct
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn

SAID_AT = datetime(2026, 3, 9, 8, 0, tzinfo=UTC)
DEMO = Path(afterword.__file__).parent / "demo" / "sessions" / "mira" / "2026-06-20-trondheim.json"


def turns_of(*texts: str) -> tuple[Turn, ...]:
    return tuple(Turn(place, "user", Role.HUMAN, text, SAID_AT) for place, text in enumerate(texts, start=1))


def said(*texts: str) -> list[Candidate]:
    return find_candidates(Window(1, turns_of(*texts), (), ("user",), ("user",)))


def asserted(text: str, session_id: str) -> Assertion:
    transcript = Transcript(turns_of(text), "test", ("user",), time_basis=TimeBasis.TURNS)
    found = ground(said(text), transcript, scope=Scope.user("lena"), session_id=session_id, owners=("user",))
    [one] = found.assertions
    return one


@pytest.mark.parametrize(
    ("text", "subject", "attribute", "value"),
    [
        ("Forget that I am vegetarian.", "user", "diet", "vegetarian"),
        ("Please forget that I'm vegetarian.", "user", "diet", "vegetarian"),
        ("Could you please forget that I'm vegetarian?", "user", "diet", "vegetarian"),
        ("I'd like you to forget that I'm vegetarian.", "user", "diet", "vegetarian"),
        ("Don't remember that I live in Porto.", "user", "home", "Porto"),
        ("Please do not store that I live in Porto.", "user", "home", "Porto"),
        ("Forget I live in Porto.", "user", "home", "Porto"),
        ("Forget that Ida is allergic to nuts.", "Ida", "allergy", "nuts"),
        ("Forget that I drink coffee.", "user", "coffee", "drink coffee"),
    ],
)
def test_a_request_to_forget_erases(text: str, subject: str, attribute: str, value: str) -> None:
    [found] = said(text)
    assert (found.act, found.subject, found.attribute, found.value) == (SpeechAct.ERASE, subject, attribute, value)


def test_the_note_of_a_request_to_forget_does_not_repeat_what_is_forgotten() -> None:
    assert [one.statement for one in said("Forget that I am vegetarian.")] == [
        "The user asked to forget the user's diet."
    ]
    assert [one.statement for one in said("Forget that Ida is allergic to nuts.")] == [
        "The user asked to forget Ida's allergy."
    ]


@pytest.mark.parametrize("text", ["Don't forget that I'm vegetarian.", "You forgot that I'm vegetarian."])
def test_a_reminder_is_no_request_to_forget(text: str) -> None:
    assert [(one.act, one.value) for one in said(text)] == [(SpeechAct.STATE, "vegetarian")]


@pytest.mark.parametrize(
    "text",
    [
        "Forget that I am vegetarian, haha.",
        "Maybe forget that I'm vegetarian.",
        "Forget that I said anything.",
        "I doubt that I live in Porto.",
        "It's not true that you live in Porto.",
    ],
)
def test_what_is_neither_asked_nor_stated_is_left_out(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "It's not true that I live in Porto.",
        "It isn't true that I live in Porto.",
        "That's wrong, it is not the case that I live in Porto.",
        "I never said that I live in Porto.",
        "I didn't say I live in Porto.",
    ],
)
def test_a_denial_retracts(text: str) -> None:
    [found] = said(text)
    assert (found.act, found.attribute, found.value, found.cue) == (SpeechAct.RETRACT, "home", "Porto", Cue.CORRECTION)
    assert found.statement == "It is not true that the user lives in Porto."


def test_a_denial_takes_only_what_it_denies() -> None:
    found = said("I live in Faro.", "It's not true that I live in Porto.")
    assert [(one.act, one.value) for one in found] == [(SpeechAct.STATE, "Faro"), (SpeechAct.RETRACT, "Porto")]


@pytest.mark.parametrize(
    ("text", "slot", "claim"),
    [
        ("I am no longer vegetarian.", ("user", "diet", "vegetarian"), "the user is vegetarian."),
        ("I'm not vegetarian any more.", ("user", "diet", "vegetarian"), "the user is vegetarian."),
        ("I stopped being vegetarian.", ("user", "diet", "vegetarian"), "the user is vegetarian."),
        ("I don't live in Porto any more.", ("user", "home", "Porto"), "the user lives in Porto."),
        ("I've stopped living in Porto.", ("user", "home", "Porto"), "the user lives in Porto."),
        ("I no longer use zsh.", ("user", "uses_zsh", "zsh"), "the user uses zsh."),
        ("I quit using zsh.", ("user", "uses_zsh", "zsh"), "the user uses zsh."),
        ("I've stopped running on Fridays.", ("user", "run", "run on Fridays"), "the user runs on Fridays."),
        ("I no longer work at Corvid Labs.", ("user", "employer", "Corvid Labs"), "the user works at Corvid Labs."),
        ("Ida is no longer vegetarian.", ("Ida", "diet", "vegetarian"), "Ida is vegetarian."),
        ("Ida isn't vegetarian anymore.", ("Ida", "diet", "vegetarian"), "Ida is vegetarian."),
    ],
)
def test_what_is_over_is_retracted(text: str, slot: tuple[str, str, str], claim: str) -> None:
    [found] = said(text)
    assert (found.subject, found.attribute, found.value) == slot
    assert (found.act, found.cue, found.statement) == (
        SpeechAct.RETRACT,
        Cue.CHANGE,
        f"It is no longer true that {claim}",
    )


def test_what_follows_in_the_same_sentence_is_read() -> None:
    found = said("I don't live in Porto any more, I live in Faro.")
    assert [(one.act, one.value) for one in found] == [(SpeechAct.RETRACT, "Porto"), (SpeechAct.STATE, "Faro")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("I am vegetarian.", "Forget that I am vegetarian."),
        ("I'm vegetarian.", "I stopped being vegetarian."),
        ("We live in Porto.", "It's not true that I live in Porto."),
        ("I live in Porto.", "Don't remember that I live in Porto."),
        ("I've switched to zsh.", "I no longer use zsh."),
        ("I prefer zsh.", "I don't use zsh any more."),
        ("We deploy on Fridays.", "We no longer deploy on Fridays."),
        ("I prefer window seats.", "Forget that I prefer window seats."),
    ],
)
def test_the_offline_judge_relates_a_take_back_to_what_was_said(before: str, after: str) -> None:
    decided = relation_by_slot(asserted(before, "s1"), asserted(after, "s2"))
    assert decided is not None
    assert decided[0] is Relation.RETRACTS


def test_the_request_to_forget_of_the_demo_is_read() -> None:
    transcript = read_file(DEMO)
    found = find_candidates(Window(1, transcript.turns, (), ("mira",), transcript.humans))
    erased = [(one.subject, one.attribute, one.value) for one in found if one.act is SpeechAct.ERASE]
    assert erased == [("user", "diet", "vegetarian")]
    assert all(one.act is not SpeechAct.STATE for one in found if one.attribute == "diet")
