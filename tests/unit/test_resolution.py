"""Which pairs a judge must see."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afterword.facts.assertions import Assertion, Authority, Cue, Evidence, EvidenceKind, Kind, SpeechAct
from afterword.facts.scopes import Scope
from histories import pairs_of

LENA = Scope.user("lena")


def said(
    name: str,
    on: int,
    statement: str = "The user wants a window seat.",
    *,
    subject: str = "user",
    attribute: str = "seat",
    value: str = "window",
    act: SpeechAct = SpeechAct.STATE,
    cue: Cue | None = None,
    session_id: str | None = None,
) -> Assertion:
    """A statement of this id, said in the session of that day."""
    session_id = session_id or f"s{on}"
    return Assertion(
        id=name,
        scope=LENA,
        session_id=session_id,
        act=act,
        kind=Kind.ENTITY,
        subject=subject,
        attribute=attribute,
        value=value,
        statement=statement,
        speaker="user",
        authority=Authority.STATED,
        said_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=on),
        evidence=(Evidence(EvidenceKind.TURN, statement, session_id, 1, "user"),),
        cue=cue,
    )


def ids(new: list[Assertion], known: list[Assertion]) -> list[tuple[str, str]]:
    return [(earlier.id, later.id) for earlier, later in pairs_of(new, known)]


WINDOW = said("window", 1)
AISLE = said("aisle", 2, "The user wants an aisle seat.", value="aisle")
CITY = said("city", 1, "The user lives in Graz.", attribute="home_city", value="Graz")


def test_a_slot_meets_its_earlier_values() -> None:
    assert ids([AISLE], [WINDOW, CITY]) == [("window", "aisle")]


def test_a_value_that_has_been_replaced_is_still_met() -> None:
    """Whoever arrives late must find what its successor retired, or the order of arrival would show."""
    third = said("bulkhead", 3, "The user wants the bulkhead.", value="bulkhead")
    assert {("window", "bulkhead"), ("aisle", "bulkhead")} == set(ids([third], [WINDOW, AISLE]))


def test_a_session_that_arrives_late_stands_earlier_in_the_pair() -> None:
    assert ids([WINDOW], [AISLE]) == [("window", "aisle")]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (
            said("a", 1, "The user is insured with Harbour Mutual.", attribute="car_insurance", value="Harbour Mutual"),
            said("b", 2, "The user chose Brindle as car insurer.", attribute="car_insurer", value="Brindle"),
        ),
        (
            said("a", 1, "The Elm Leaf articles have 120 words at most.", subject="The Elm Leaf", attribute="length"),
            said("b", 2, "Newsletter articles have 90 words.", subject="the newsletter", attribute="article_length"),
        ),
        (
            said("a", 1, "Garrick, called the Colonel, brings eggs on Mondays.", subject="bakery", attribute="eggs"),
            said("b", 2, "The Colonel comes on Fridays.", subject="the Colonel", attribute="visits", cue=Cue.CHANGE),
        ),
    ],
    ids=["another attribute", "another name", "mentioned elsewhere"],
)
def test_what_is_worded_alike_is_met_under_another_slot(earlier: Assertion, later: Assertion) -> None:
    """Extractors name one thing in several ways; the slot alone would miss the change."""
    assert ids([later], [earlier]) == [("a", "b")]


def test_a_marked_change_meets_all_of_its_kind_about_that_thing() -> None:
    printed = said("a", 1, "The Leaf is printed in 200 copies.", subject="The Leaf", attribute="print_run", value="200")
    digital = said("b", 2, "The Leaf is digital only.", subject="The Leaf", attribute="form", value="digital only")
    assert ids([digital], [printed]) == []
    assert ids([replace(digital, cue=Cue.CHANGE)], [printed]) == [("a", "b")]


def test_a_retraction_meets_what_it_names_and_nothing_else() -> None:
    taken_back = said("x", 3, "The user wants a window.", attribute="wish", act=SpeechAct.RETRACT)
    assert ids([taken_back], [WINDOW, CITY]) == [("window", "x")]


def test_a_retraction_that_names_little_meets_all_of_its_subject_whoever_arrives_first() -> None:
    vague = said("x", 3, "That is to be forgotten.", attribute="it", value="that", act=SpeechAct.ERASE)
    other = said("other", 1, "Tom plays the piano.", subject="Tom", attribute="hobby", value="piano")
    assert set(ids([vague], [WINDOW, CITY, other])) == {("window", "x"), ("city", "x")}
    assert ids([CITY], [vague]) == [("city", "x")]


def test_nothing_said_after_a_retraction_meets_it() -> None:
    early = said("x", 0, "The user wants a window seat.", act=SpeechAct.RETRACT)
    assert ids([WINDOW], [early]) == []


def test_within_a_session_only_the_slot_and_near_copies_are_met() -> None:
    """The extractor has seen the whole window: what it wrote side by side is meant side by side."""
    flights = said("flights", 1, "The user takes no flights before nine.", attribute="flight_time", value="after nine")
    airline = said("airline", 1, "The user takes flights with Kestrel.", attribute="airline", value="Kestrel flights")
    copy = replace(flights, id="copy", attribute="departure_time")
    assert ids([airline, flights], []) == []
    assert ids([airline, replace(flights, session_id="s0")], []) == [("flights", "airline")]
    assert ids([flights, copy], []) == [("copy", "flights")]


def test_restatements_are_thin() -> None:
    """Six hundred sessions that say the same cost one pair each, and a change after them one more."""
    repeated = [said(f"r{number:03}", number) for number in range(600)]
    assert len(pairs_of([repeated[-1]], repeated[:-1])) == 1
    assert len(pairs_of([repeated[300]], repeated)) == 2
    assert len(pairs_of(repeated, [])) == 599
    assert ids([said("z", 601, value="aisle")], repeated) == [("r599", "z")]
    assert ids([said("x", 601, act=SpeechAct.RETRACT)], repeated) == [("r599", "x")]


def test_the_likeliest_conflicts_come_first() -> None:
    """A judge takes a limited number of pairs at once; the first ones must be the right ones."""
    near = said("near", 0, "The user wants a window table, not an aisle one.", attribute="table_preference")
    exit_row = said("exit", 1, "The user sits in the exit row.", value="exit row")
    assert ids([replace(AISLE, cue=Cue.CHANGE)], [near, exit_row, CITY])[:2] == [("exit", "aisle"), ("near", "aisle")]


STATEMENTS = [
    ("user", "seat", "window", "The user wants a window seat."),
    ("user", "seat_preference", "aisle", "The user wants an aisle seat on planes."),
    ("Ines", "diet", "vegan", "Ines, the user's wife, is vegan."),
    ("user's wife", "diet", "fish", "The user's wife Ines eats fish."),
    ("user", "it", "that", "That."),
]


@st.composite
def histories(draw: st.DrawFn) -> list[Assertion]:
    """Up to five assertions, each with a value of its own, in up to four sessions."""
    found = []
    for number in range(draw(st.integers(2, 5))):
        subject, attribute, value, statement = draw(st.sampled_from(STATEMENTS))
        act = draw(st.sampled_from([SpeechAct.STATE, SpeechAct.STATE, SpeechAct.RETRACT]))
        cue = draw(st.sampled_from([None, Cue.CHANGE]))
        about = {"subject": subject, "attribute": attribute, "value": f"{value} {number}"}
        found.append(said(f"a{number}", draw(st.integers(0, 3)), statement, **about, act=act, cue=cue))
    return found


@given(histories())
def test_the_order_of_arrival_decides_no_pair(history: list[Assertion]) -> None:
    """Whether a pair is judged must not depend on which session was processed first."""
    sessions = {one.session_id: [each for each in history if each.session_id == one.session_id] for one in history}
    judged = []
    for order in itertools.permutations(sessions.values()):
        known: list[Assertion] = []
        pairs: set[tuple[str, str]] = set()
        for new in order:
            pairs |= set(ids(new, known))
            known += new
        judged.append(pairs)
    assert all(pairs == judged[0] == set(ids(history, [])) for pairs in judged)


@given(histories(), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_equal_input_in_any_order_gives_equal_pairs_in_equal_order(history: list[Assertion], order: Random) -> None:
    shuffled = list(history)
    order.shuffle(shuffled)
    assert ids(shuffled, []) == ids(history, [])
