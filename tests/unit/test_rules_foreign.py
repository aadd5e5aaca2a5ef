"""What stands in a person's turn and is not said by them; and how settled things read."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Window
from afterword.extractors.rules.extractor import find_candidates
from afterword.extractors.rules.sentences import hide_passages
from afterword.facts.transcripts import Role, Turn

SAID_AT = datetime(2026, 6, 20, 8, 0, tzinfo=UTC)


def said(text: str) -> list[Candidate]:
    return find_candidates(Window(1, (Turn(1, "user", Role.HUMAN, text, SAID_AT),), (), ("user",), ("user",)))


@pytest.mark.parametrize(
    "text",
    [
        "Translate into French: I live in Porto.",
        "Hi, can you translate this: I live in Porto. I prefer tea.",
        "Translate this:\n\nI live in Porto.\n\nI am vegetarian.",
        "Translate to German - I live in Porto.",
        "Translate I live in Porto into French.",
        "Please proofread the following text. I live in Porto.",
        "Summarise for me: I live in Porto.",
        "Can you fix this sentence: I live in Porto",
        "Reply to him: I live in Porto.",
        "Say: I live in Porto.",
        "Thanks. Now rewrite it: I live in Porto.",
        "Write a poem that starts with I live in Porto.",
        "Write a story titled I live in Porto.",
        "Here is Anna's mail:\nHi, I live in Porto. I am allergic to nuts.",
        "I got this message from Anna:\nI live in Porto.",
        "The mail from Anna: I live in Porto.",
        "She wrote: I live in Porto.\n\nI prefer tea.",
        "Anna replied to me: I live in Porto.",
        "Subject: Moving\n\nI live in Porto.",
        "Dear Jonas,\n\nI live in Porto.\n\nBest, Anna",
        "def f():\n    # I prefer tabs",
        "// I prefer tabs",
        "x = 1  # I prefer tabs",
        "    I prefer tabs;",
        "As an example: I prefer window seats.",
        "For example:\nI prefer window seats.",
        "For example, I prefer window seats.",
        "Names can be long, e.g. I prefer window seats.",
    ],
)
def test_what_is_passed_on_is_not_the_speakers_own(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I live in Porto. Translate into French: I am vegetarian.", "Porto"),
        ("As an example: I prefer window seats.\nI live in Porto.", "Porto"),
        ("def f():\n    # I prefer tabs\n\nI live in Porto.", "Porto"),
        ("Dear assistant,\n\nI live in Porto.", "Porto"),
        ("From now on: no onions.", "no onions"),
        ("Write to me in German.", "German"),
        ("I prefer tea, for example with milk.", "tea, for example with milk"),
        ("- I prefer tea;", "tea"),
    ],
)
def test_what_the_speaker_says_beside_it_is_read(text: str, value: str) -> None:
    assert [one.value for one in said(text)] == [value]


@given(st.text(st.sampled_from("aI .:\n\t#/;{}=>,-!?\x00é"), max_size=300) | st.text(max_size=300))
def test_hiding_keeps_every_place(text: str) -> None:
    assert len(hide_passages(text)) == len(text)


@pytest.mark.parametrize(
    "part", ["write ", "here is ", "a=(;", "e.g. I ", "mail from ", "\t#", "Anna said ", "translate\t"]
)
def test_hiding_comes_to_its_end_on_any_length(part: str) -> None:
    """A pattern that tried the same words again and again would hold a run, and this test, up for hours."""
    hide_passages(part * (60_000 // len(part)))


@pytest.mark.parametrize(
    ("text", "attribute", "value", "statement"),
    [
        ("Please always keep your answers short.", "answer", "short", "The user wants answers kept short."),
        ("Use Celsius please, always.", "celsius", "Use Celsius, always",
         "The user wants the assistant to use Celsius, always."),
        ("Always keep your code comments in English.", "comment", "Always keep your code comments in English",
         "The user wants the assistant to always keep its code comments in English."),
        ("Our budget is at most 90 euros a night.", "budget_per_night", "90 euros",
         "The user's budget is at most 90 euros a night."),
        ("My budget is 50 euros.", "budget", "50 euros", "The user's budget is 50 euros."),
        ("We'll take the 08:25.", "choice", "the 08:25", "The user takes the 08:25."),
    ],
)  # fmt: skip
def test_a_wish_reads_as_one_would_say_it(text: str, attribute: str, value: str, statement: str) -> None:
    assert [(one.attribute, one.value, one.statement) for one in said(text)] == [(attribute, value, statement)]


@pytest.mark.parametrize(
    "text", ["Our budget is at most 1500 NOK for the trip.", "The budget for the trip is at most 1500 NOK."]
)
def test_a_budget_is_limited_to_what_it_is_for(text: str) -> None:
    [found] = said(text)
    assert (found.attribute, found.value, found.limited_to) == ("budget", "at most 1500 NOK", "the trip")
    assert found.statement == "The user's budget for the trip is at most 1500 NOK."


def test_a_booking_is_decided_for_its_day() -> None:
    [found] = said("Let's take the night train on 3 July.")
    assert (found.attribute, found.value) == ("train", "the night train")
    assert found.statement == "The user takes the night train on 3 July 2026."
    assert (found.valid_from, found.valid_to) == (date(2026, 7, 3), date(2026, 7, 3))


def test_a_suggestion_that_points_elsewhere_is_no_decision() -> None:
    assert said("Let's take the one you named.") == []
