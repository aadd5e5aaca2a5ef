"""No quote, no fact: each rule of grounding."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.candidates import Candidate, Citation, Modality
from afterword.extractors.grounding import Grounding, ground
from afterword.extractors.quote_search import find_quote
from afterword.extractors.rejection_reasons import RejectionReason
from afterword.facts.assertions import Authority, Kind, SpeechAct
from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn
from afterword.facts.words import snake_case
from afterword.normal_form import composed

LENA = Scope.user("lena.a")
EIGHT, NINE = (datetime(2026, 3, 9, hour, tzinfo=UTC) for hour in (8, 9))
TURNS = (
    Turn(1, "user", Role.HUMAN, "I’m Lena. I always take\n the “aisle” seat – always.", EIGHT),
    Turn(2, "assistant", Role.AGENT, "Shall I book Casa Alta for you?", EIGHT),
    Turn(3, "user", Role.HUMAN, "Yes please.", NINE),
    Turn(4, "search", Role.TOOL, "The user hates stairs.", NINE),
    Turn(5, "memory", Role.MEMORY, "The user lives in Linz.", NINE),
    Turn(6, "assistant", Role.AGENT, "You like window seats.", NINE),
)


def candidate(*cited: tuple[int, str], **more: Any) -> Candidate:
    fields: dict[str, Any] = {
        "kind": Kind.PREFERENCE,
        "subject": "user",
        "attribute": "seat",
        "value": "aisle",
        "statement": "The user always takes the aisle seat.",
        "evidence": [Citation(turn=turn, quote=quote) for turn, quote in cited or ((1, "I always take"),)],
    }
    return Candidate(**fields | more)


def grounded(
    *candidates: Candidate,
    turns: tuple[Turn, ...] = TURNS,
    scope: Scope = LENA,
    owners: tuple[str, ...] = ("user",),
    basis: TimeBasis = TimeBasis.TURNS,
) -> Grounding:
    humans = tuple(dict.fromkeys(turn.speaker for turn in turns if turn.role is Role.HUMAN))
    transcript = Transcript(turns, "test", humans=humans, time_basis=basis)
    return ground(candidates, transcript, scope=scope, session_id="s1", owners=owners)


def refusal(*candidates: Candidate, **more: Any) -> str:
    found = grounded(*candidates, **more)
    assert found.assertions == ()
    [rejection] = found.rejections
    assert rejection.detail
    return rejection.reason


def test_a_quote_is_kept_as_it_stands_in_the_turn() -> None:
    """A model writes straight quotes and one space; the evidence must be found in the saved words."""
    [assertion] = grounded(candidate((1, 'I\'m Lena. I always take the "aisle" seat - always.'))).assertions
    assert assertion.evidence[0].quote == TURNS[0].text


@pytest.mark.parametrize(
    ("cited", "reason"),
    [
        ((9, "I always take"), RejectionReason.TURN_UNKNOWN),
        ((1, "i always take"), RejectionReason.QUOTE_MISSING),
        ((1, "I always take the window seat"), RejectionReason.QUOTE_MISSING),
        ((1, ""), RejectionReason.QUOTE_MISSING),
        ((1, " . "), RejectionReason.QUOTE_MISSING),
        ((4, "hates stairs"), RejectionReason.NOT_A_PERSON),
        ((5, "lives in Linz"), RejectionReason.NOT_A_PERSON),
        ((6, "You like window seats."), RejectionReason.NOT_ACCEPTED),
    ],
)
def test_a_candidate_without_a_persons_words_is_refused(cited: tuple[int, str], reason: RejectionReason) -> None:
    assert refusal(candidate(cited)) == reason


def test_a_candidate_that_cites_nothing_is_refused() -> None:
    assert refusal(candidate(evidence=[])) == RejectionReason.NOT_A_PERSON


def test_one_quote_that_is_not_there_spoils_the_candidate() -> None:
    assert refusal(candidate((1, "I always take"), (3, "the aisle seat"))) == RejectionReason.QUOTE_MISSING


def test_what_an_agent_proposed_counts_once_a_person_has_accepted_it() -> None:
    booked = {"value": "Casa Alta", "attribute": "hotel", "statement": "The user books Casa Alta."}
    [assertion] = grounded(candidate((3, "Yes please"), (2, "Casa Alta"), accepted_in=3, **booked)).assertions
    assert [(item.turn, item.quote, item.speaker) for item in assertion.evidence] == [
        (2, "Casa Alta", "assistant"),
        (3, "Yes please", "user"),
    ]
    assert (assertion.said_at, assertion.speaker) == (NINE, "user")


def test_an_acceptance_that_is_not_named_is_none() -> None:
    booked = {"value": "Casa Alta", "attribute": "hotel", "statement": "The user books Casa Alta."}
    [rejection] = grounded(candidate((3, "Yes please"), (2, "Casa Alta"), **booked)).rejections
    assert (rejection.reason, rejection.detail.split(":")[0]) == (RejectionReason.NOT_ACCEPTED, "accepted_in")


def test_a_fact_is_flagged_where_the_extractor_or_its_words_say_so() -> None:
    plain, flagged = (grounded(candidate(flagged=flag)).assertions[0] for flag in (False, True))
    assert (plain.is_flagged, flagged.is_flagged) == (False, True)
    assert plain.id != flagged.id


RENAMED = (
    Turn(1, "user", Role.HUMAN, "Our ledgerd is called billing-core now, Lena and I decided. It uses Go.", EIGHT),
)


def renamed(former_name: str | None, subject: str = "billing-core") -> Candidate:
    words = {"attribute": "name", "value": "billing-core", "statement": f"{subject} is the new name."}
    return candidate((1, "is called billing-core now"), subject=subject, former_name=former_name, **words)


def test_a_former_name_must_stand_in_the_cited_words() -> None:
    for former, expected in {"ledgerd": "ledgerd", " ledgerd ": "ledgerd", "Billing-Core": None, "": None}.items():
        [assertion] = grounded(renamed(former), turns=RENAMED).assertions
        assert assertion.former_name == expected
    for former in ("postgresd", "Go service", "x" * 101):
        assert refusal(renamed(former), turns=RENAMED) in (RejectionReason.UNSUPPORTED, RejectionReason.TOO_LONG), (
            former
        )


@pytest.mark.parametrize("former", ["user", "I", "Lena", "lena.a"])
def test_nobody_else_was_called_like_the_owner(former: str) -> None:
    """A model that lies could otherwise hang a stranger's facts on the owner."""
    turns = (replace(RENAMED[0], speaker="Lena", text=f"{RENAMED[0].text[:-1]} user lena.a."),)
    assert refusal(renamed(former), turns=turns, owners=("Lena",)) == RejectionReason.UNSUPPORTED


def test_an_acceptance_before_the_proposal_is_none() -> None:
    assert refusal(candidate((3, "Yes please"), (6, "You like window seats"))) == RejectionReason.NOT_ACCEPTED


def test_a_tools_words_are_left_out_where_a_persons_words_remain() -> None:
    [assertion] = grounded(candidate((1, "I always take"), (4, "hates stairs"), (5, "not even there"))).assertions
    assert [item.turn for item in assertion.evidence] == [1]


@pytest.mark.parametrize("modality", [one for one in Modality if one is not Modality.STATED])
def test_only_what_was_stated_is_asserted(modality: Modality) -> None:
    assert refusal(candidate(modality=modality)) == RejectionReason.NOT_ASSERTED


def test_a_request_to_forget_may_be_a_question() -> None:
    assert grounded(candidate(modality=Modality.ASKED, act=SpeechAct.ERASE)).assertions
    assert refusal(candidate(modality=Modality.JOKING, act=SpeechAct.ERASE)) == RejectionReason.NOT_ASSERTED


@pytest.mark.parametrize(
    ("field", "longest"), [("statement", 400), ("value", 200), ("subject", 100), ("attribute", 60), ("outcome", 200)]
)
def test_fields_are_bounded(field: str, longest: int) -> None:
    longest_text = "aisle " * (longest // 6)
    assert grounded(candidate(**{field: longest_text.ljust(longest, "!")})).assertions
    assert refusal(candidate(**{field: longest_text + "x" * 7})) == RejectionReason.TOO_LONG


@pytest.mark.parametrize("field", ["statement", "value", "subject", "attribute"])
@pytest.mark.parametrize("blank", ["", " \n", "\x00"])
def test_fields_must_say_something(field: str, blank: str) -> None:
    assert refusal(candidate(**{field: blank})) == RejectionReason.EMPTY


@pytest.mark.parametrize(
    ("name", "owners", "scope", "subject"),
    [
        ("The User", ("user",), LENA, "user"),
        ("I", ("user",), LENA, "user"),
        ("lena.a", ("user",), LENA, "user"),
        ("Lena A", ("user",), LENA, "user"),
        ("Lena", ("user",), LENA, "Lena"),
        ("Casa Alta", ("user",), LENA, "Casa Alta"),
        ("me", (), LENA, "user"),
        ("priya", (), Scope("default", ScopeKind.TEAM, "priya"), "priya"),
    ],
)
def test_the_owner_has_one_name(name: str, owners: tuple[str, ...], scope: Scope, subject: str) -> None:
    [assertion] = grounded(candidate(subject=name), owners=owners, scope=scope).assertions
    assert assertion.subject == subject


def test_the_first_person_of_somebody_else_is_that_person() -> None:
    """Two people in one session: what Jonas says of himself must not become the owner's."""
    turns = (Turn(1, "jonas", Role.HUMAN, "I deploy on Tuesdays.", EIGHT), Turn(2, "priya", Role.HUMAN, "Fine.", NINE))
    said = candidate((1, "I deploy on Tuesdays."), value="Tuesdays", statement="Deploys on Tuesdays.")
    [assertion] = grounded(said, turns=turns, scope=Scope.user("priya"), owners=("priya",)).assertions
    assert (assertion.subject, assertion.speaker) == ("jonas", "jonas")
    [about_owner] = grounded(
        said.model_copy(update={"subject": "Priya"}), turns=turns, scope=Scope.user("priya"), owners=("priya",)
    ).assertions
    assert about_owner.subject == "user"


def test_validity_spans_whole_days_in_utc() -> None:
    [assertion] = grounded(candidate(valid_from=date(2026, 5, 1), valid_to=date(2026, 5, 1))).assertions
    assert assertion.valid_from == datetime(2026, 5, 1, tzinfo=UTC)
    assert assertion.valid_to == datetime(2026, 5, 1, 23, 59, 59, tzinfo=UTC)


def test_an_end_before_the_start_is_refused() -> None:
    assert refusal(candidate(valid_from=date(2026, 5, 2), valid_to=date(2026, 5, 1))) == RejectionReason.BAD_TIME


def test_a_files_time_is_marked_as_a_guess() -> None:
    turns = tuple(replace(turn, time_is_guess=True) for turn in TURNS)
    [assertion] = grounded(candidate(), turns=turns, basis=TimeBasis.FILE).assertions
    assert assertion.time_is_guess
    assert assertion.authority is Authority.STATED


def test_a_turn_without_a_time_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="has no time"):
        grounded(candidate((1, "Hello")), turns=(Turn(1, "user", Role.HUMAN, "Hello"),))


def test_equal_assertions_are_one_and_every_content_field_makes_another() -> None:
    same = [candidate(attribute="Seat"), candidate(attribute=" seat ")]
    other = [
        candidate(**change)
        for change in (
            {"value": "seat"},
            {"act": SpeechAct.RETRACT},
            {"kind": Kind.ENTITY},
            {"cue": "change"},
            {"limited_to": "the aisle"},
            {"outcome": "booked"},
            {"valid_from": date(2026, 5, 1)},
            {"valid_to": date(2026, 5, 1)},
        )
    ]
    found = grounded(*same, *other).assertions
    assert len({one.id for one in found}) == len(found) == 9


@pytest.mark.parametrize(("text", "snake"), [("Max Heart-Rate", "max_heart_rate"), ("__ß", "ss"), ("Größe", "grösse")])
def test_attributes_are_snake_case(text: str, snake: str) -> None:
    assert snake_case(text) == snake


@given(text=st.text(max_size=80), data=st.data())
def test_a_quote_that_is_found_stands_in_the_turn(text: str, data: st.DataObject) -> None:
    text = composed(text)
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    copied = data.draw(st.sampled_from([text[start:end], "  ".join(text[start:end].split(" "))]))
    found = find_quote(copied, text)
    if found is None:
        assert not any(sign.isalnum() for sign in copied)
    else:
        assert found in text
        assert " ".join(found.split()) in " ".join(text.split())


@given(quote=st.text(max_size=20), text=st.text(max_size=60))
def test_no_quote_is_found_that_is_not_there(quote: str, text: str) -> None:
    found = find_quote(quote, text)
    assert found is None or found in text


FEED = Turn(1, "crm_export", Role.HUMAN, "I live in Oslo. Lena.A lives in Oslo.", EIGHT)


@pytest.mark.parametrize(
    ("subject", "kept"), [("user", "crm_export"), ("the user", "crm_export"), ("Lena.A", "Lena.A")]
)
def test_who_only_may_be_a_person_never_speaks_of_the_owner(subject: str, kept: str) -> None:
    """A feed that speaks to a team from outside must not write into the owner's facts, by whatever name."""
    transcript = Transcript((FEED,), "test", ("crm_export",), time_basis=TimeBasis.TURNS, assumed=("crm_export",))
    proposed = candidate((1, "in Oslo"), subject=subject, attribute="home", value="Oslo", statement="Lives in Oslo.")
    found = ground([proposed], transcript, scope=LENA, session_id="s1", owners=())
    assert [(one.subject, one.speaker) for one in found.assertions] == [(kept, "crm_export")]


def test_an_assumed_speaker_whom_the_scope_names_is_the_owner() -> None:
    turn = Turn(1, "lena", Role.HUMAN, "I live in Oslo.", EIGHT)
    transcript = Transcript((turn,), "test", ("lena",), time_basis=TimeBasis.TURNS, assumed=("lena",))
    proposed = candidate((1, "in Oslo"), attribute="home", value="Oslo", statement="The user lives in Oslo.")
    found = ground([proposed], transcript, scope=LENA, session_id="s1", owners=("lena",))
    assert [one.subject for one in found.assertions] == ["user"]


@pytest.mark.parametrize("quote", ["\u3164", "\u200b\u2060", " \u3164 ", "..."])
def test_a_quote_without_a_visible_letter_is_found_nowhere(quote: str) -> None:
    assert find_quote(quote, "I live in Bergen.") is None
    assert find_quote(quote, f"I live in{quote}Bergen.") is None
