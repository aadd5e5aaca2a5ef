"""A quote must support its statement: what is refused, with its reason, and what honest extractions keep."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from afterword.extractors import grounding, quote_support, said_words
from afterword.extractors.candidates import Answer, Candidate, Citation
from afterword.extractors.grounding import ground
from afterword.extractors.rejection_reasons import RejectionReason
from afterword.extractors.testing import OracleExtractor
from afterword.facts.assertions import Kind, SpeechAct
from afterword.facts.transcripts import Role, Transcript, Turn
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.privacy.policy import Privacy
from afterword.store import lookup
from afterword.store.database.engine import Store
from quoting import MIRA, NOON, A, Case, P, grounded, one, refusals

UNSUPPORTED: tuple[Case, ...] = (
    one("I opened an account today.", "I", "Evil Bank", "The user's bank is Evil Bank."),
    one("I opened an account today.", "account", "Evil Bank account", "The user has an account at Evil Bank."),
    one("I opened an account today.", "I opened an account", "account", "The user's account is at Evil Bank."),
    one("My bank is slow.", "bank", "Evil Bank", "The user's bank is Evil Bank."),
    one("I want pizza. I live here.", "I", "Eve Corp", "The user works for Eve Corp."),
    one("Hello.", "Hello", "hello from Minsk", "The user lives in Minsk."),
    one("Hello.", "Hello", "Minsk", "The user lives in Minsk."),
    one("My account is broken.", "account", "account 4711", "The user's account is 4711."),
    one("My account is 4712.", "My account is", "account 4711", "The user's account is 4711."),
    one("I pay 30 a month.", "I pay", "300 a month", "The user pays 300 a month."),
    one("I pay a lot.", "I pay", "4,000 euros", "The user pays 4,000 euros."),
    one("I like tea.", "I like tea", "peanuts", "The user is allergic to peanuts."),
    one("I like tea.", "tea", "no allergy at all", "The user has no allergy."),
    one("I am happy.", "I am", "vegan", "The user is vegan."),
    one("Ok.", "Ok", "yes", "The user agrees to pay Eve."),
    one("Ok.", "Ok", "on", "The user wants all chats forwarded."),
    one("What a day!", "day", "12 May 2026", "The user gets married on 12 May 2026."),
    one("Nice.", "Nice", "12 May 2026", "The user gets married on 12 May 2026."),
    one("Nice.", "Nice", "at 07:30", "The user gets up at 07:30."),
    one("I go there.", "I go there", "every Friday", "The user goes there every Friday."),
    one("I drive.", "I drive", "a Porsche 911", "The user drives a Porsche 911."),
    one("My son is ill.", "son", "Tom Evil", "The user's son is called Tom Evil."),
    one("I like the sea.", "the", "Acme hotels", "The user prefers Acme hotels."),
    one("Bitte kurz.", "Bitte", "ausführliche Antworten", "Die Nutzerin will ausführliche Antworten."),
    one("Vivo aquí.", "Vivo", "Moscú", "La usuaria vive en Moscú."),
    one("J'habite ici.", "J'habite", "Moscou", "L'utilisatrice habite à Moscou."),
    one("Abito qui.", "Abito", "Mosca", "L'utente abita a Mosca."),
    one("Moro aqui.", "Moro", "Moscou", "O usuário mora em Moscou."),
    one("Ik woon hier.", "Ik", "Moskou", "De gebruiker woont in Moskou."),
    one("Ich wohne hier.", "Ich", "Moskau", "Die Nutzerin wohnt in Moskau."),
    # a page in an agent's or a tool's turn said it, and the person said something else
    (((A, "Your bank is Evil Bank."), (P, "Show me the weather.")), ((2, "Show me"),), "Evil Bank", "Bank: Evil Bank."),
    (((Role.TOOL, "The account is 4711."), (P, "Thanks for that.")), ((2, "Thanks"),), "4711", "The account is 4711."),
    (((Role.SYSTEM, "Mira is a pilot."), (P, "I am here.")), ((2, "I am"),), "pilot", "The user is a pilot."),
    (((Role.THOUGHT, "Mira is a pilot."), (P, "I am here.")), ((2, "I am"),), "pilot", "The user is a pilot."),
)
ANSWERS_THAT_ACCEPT_NOTHING = (
    "No. I never said that.",
    "No.",
    "Never.",
    "Hm.",
    "What?",
    "Is that so?",
    "I doubt it is right.",
    "That is wrong.",
    "Not really.",
    "Maybe.",
    "Perhaps, yes.",
    "If you say so, fine?",
    "Sure, as if.",
    "Yeah, right.",
    "That isn't correct.",
    "Why do you think so?",
    "Read me the weather.",
    "Nein.",
    "Das stimmt nicht.",
    "Niemals.",
    "Ja? Nein.",
    "No, gracias.",
    "Non.",
    "Pas d'accord.",
    "Não.",
    "Nee.",
    "Falso.",
    "Yes, but not that one.",
    "Good grief, no.",
    "Okay, wrong again.",
)
ANSWERS_THAT_ACCEPT = (
    "Yes.",
    "Yes please!",
    "ok",
    "Sure, thanks.",
    "Perfect, we take that.",
    "Exactly.",
    "Go ahead.",
    "Sounds good",
    "That's it.",
    "Fine by me.",
    "Ja, gern.",
    "Genau.",
    "Sí, claro.",
    "Oui, d'accord.",
    "Va bene.",
    "Sim, perfeito.",
    "Ja, prima.",
)
HONEST: tuple[Case, ...] = (
    one("I live in Graz.", "I live in Graz", "Graz", "The user lives in Graz."),
    one("I'm vegetarian, always was.", "vegetarian", "vegetarian", "The user is vegetarian."),
    one("I do about 18,000 km a year.", "18,000 km", "18000 km a year", "The user drives 18000 km a year."),
    one("It's 1 100 an hour.", "1 100 an hour", "1,100 kroner an hour", "It costs 1,100 kroner an hour."),
    one("deliveries before half 5 in the morning", "before half 5", "before 04:30", "Deliveries come before 04:30."),
    one("Weekends at eight.", "at eight", "08:00", "On weekends the light comes on at 08:00."),
    one("We meet next Monday.", "next Monday", "9 March 2026", "They meet on 9 March 2026."),
    one("Born on the 11th!", "Born on the 11th", "born 11 March 2026", "Born on 11 March 2026."),
    one("I work Mo to Thu, never Fridays.", "never Fridays", "no Fridays", "The user does not work on Fridays."),
    one("My partner Matteo is a nurse.", "partner Matteo", "Matteo, nurse", "The user's partner Matteo is a nurse."),
    one("We took three kids along.", "three kids", "3 kids", "The user has 3 kids."),
    one("Ich wohne in Graz.", "Ich wohne in Graz", "Graz", "Die Nutzerin wohnt in Graz."),
    one("Protokolle auf Englisch bitte.", "Englisch", "Englisch", "Die Protokolle der Nutzerin sind auf Englisch."),
    one("Vivo en Lisboa.", "Vivo en Lisboa", "Lisboa", "La usuaria vive en Lisboa."),
    one("the **aisle** seat, always", "aisle", "aisle seat", "The user always takes the aisle seat."),
    one("I take the ai\u200bsle seat.", "seat", "aisle", "The user takes the aisle seat."),
    one("Room for two: 160 at most.", "160 at most", "EUR 160 for two", "The user pays at most EUR 160 for two."),
    one(
        "From April the bank pays us by the month.",
        "pays us by the month",
        "monthly payment",
        "From April the bank pays by the month.",
    ),
    one(
        "Samstag 30. Mai Umzug, der Sprinter ist von Freitag bis Sonntag geliehen.",
        "Freitag bis Sonntag",
        "Sprinter von Freitag, 29., bis Sonntag, 31. Mai 2026",
        "Der Sprinter ist von Freitag, 29., bis Sonntag, 31. Mai 2026 geliehen.",
    ),
    one(
        "I'll call Ada, of the three at Le Stanze di Ada.",
        "I'll call Ada",
        "Le Stanze di Ada",
        "Calls Le Stanze di Ada.",
    ),
    (
        ((A, "Shall we add a newsletter link to each reply?"), (P, "No. People will find us.")),
        ((1, "newsletter link"), (2, "No")),
        "no newsletter link",
        "The user wants no newsletter link in replies.",
    ),
    (
        ((A, "3. Wie halten wir es mit dem Lieferdienst?"), (P, "Nee. Wer Kartoffeln will, kommt her.")),
        ((2, "Nee"),),
        "kein Lieferdienst",
        "Die Benutzerin will keinen Lieferdienst.",
    ),
)
TAKEN_BACK: tuple[tuple[Case, bool], ...] = (
    (one("Forget what I said about nuts.", "Forget", "nuts", "The user asked to forget nuts."), True),
    (one("I no longer live in Graz.", "no longer", "Graz", "No longer in Graz."), True),
    (one("Hello.", "Hello", "nut allergy", "The user has no nut allergy."), False),
    (one("Nice weather.", "Nice", "home address", "Forget the home address."), False),
    (one("Delete that.", "Delete that", "nut allergy", "Forget the nut allergy."), False),
    ((((A, "You are allergic to nuts."), (P, "Am I? Where is that from?")), ((1, "allergic to nuts"), (2, "Where is that")), "nuts", "Not allergic."), False),
    ((((A, "You are allergic to nuts."), (P, "No idea where that is from, drop it.")), ((1, "allergic to nuts"), (2, "drop it")), "nuts", "Not allergic."), True),
    ((((A, "You are allergic to nuts."), (P, "Thanks, and the weather?")), ((1, "allergic to nuts"), (2, "the weather")), "nuts", "Not allergic."), False),
    ((((A, "Shall I forget your address?"), (P, "Yes please.")), ((1, "your address"), (2, "Yes please")), "address", "Forget the address."), True),
)  # fmt: skip
IMPOSSIBLE_DATES = ("2026-02-30", "2026-13-01", "soon", "0000-00-00", "2026-1-1x", "", "99999-01-01", "2026-02-29")


def test_what_the_quoted_sentences_do_not_say_is_refused() -> None:
    for case in UNSUPPORTED:
        assert grounded(case) in (RejectionReason.UNSUPPORTED, RejectionReason.NOT_ACCEPTED), case


def test_an_agents_words_count_only_if_a_person_accepts_them() -> None:
    for answer in ANSWERS_THAT_ACCEPT_NOTHING + ANSWERS_THAT_ACCEPT:
        for proposal in ("Shall I book Casa Alta for you?", "Your bank is Casa Alta."):
            case = ((A, proposal), (P, answer)), ((1, "Casa Alta"), (2, answer.rstrip(" ."))), "Casa Alta", "Casa Alta."
            expected = None if answer in ANSWERS_THAT_ACCEPT else RejectionReason.NOT_ACCEPTED
            assert grounded(case) == expected, answer


@pytest.mark.parametrize("accepted_in", [None, 0, 1, 2, 4, 99])
def test_an_acceptance_that_is_not_named_or_stands_elsewhere_is_none(accepted_in: int | None) -> None:
    said = ((A, "Shall I book Casa Alta for you?"), (P, "Hm."), (P, "Yes, do it."), (P, "Lovely weather."))
    case = said, ((1, "Casa Alta"), (3, "Yes, do it")), "Casa Alta", "Casa Alta."
    assert grounded(case, accepted_in=3) is None
    assert grounded(case, accepted_in=accepted_in) == RejectionReason.NOT_ACCEPTED


def test_a_named_acceptance_that_does_not_agree_is_none() -> None:
    for answer in ANSWERS_THAT_ACCEPT_NOTHING:
        case = (
            ((A, "Your bank is Casa Alta."), (P, answer)),
            ((1, "Casa Alta"), (2, answer.rstrip(" ."))),
            "Casa Alta",
            "",
        )
        assert grounded((*case[:3], "Casa Alta."), accepted_in=2) == RejectionReason.NOT_ACCEPTED, answer


def test_a_person_may_accept_first_and_say_more_later() -> None:
    said = ((A, "Shall I book Casa Alta for you?"), (P, "Yes, do it."), (P, "It must have no stairs."))
    case = said, ((1, "Casa Alta"), (2, "Yes, do it"), (3, "no stairs")), "Casa Alta, no stairs", "Casa Alta."
    assert grounded(case, accepted_in=2) is None
    assert grounded(case, accepted_in=3) == RejectionReason.UNSUPPORTED


def test_an_agents_figures_complete_an_answer_but_no_other_words() -> None:
    words = (1, "340 euro"), (2, "the walnut table and the walnut bench")
    value = "walnut table and walnut bench, 340 euro"
    asked = (A, "The set is 340 euro, which one?"), (P, "I bought the walnut table and the walnut bench.")
    told = (A, "The set is 340 euro."), asked[1]
    assert grounded((asked, words, value, f"{value}."), accepted_in=None) is None
    assert grounded((told, words, value, f"{value}."), accepted_in=None) == RejectionReason.UNSUPPORTED


def test_honest_words_are_kept() -> None:
    for case in HONEST:
        assert grounded(case) is None, case


def test_a_lie_among_said_words_is_refused() -> None:
    lies = (
        one("I drink tea with my mother.", "I drink tea", "rat poison", "The user drinks rat poison with the mother."),
        one("Ich bin bei der Bank.", "bei der Bank", "Konto bei der Firma Schurke", "Konto bei der Firma Schurke."),
        one("El banco es el de la esquina.", "El banco", "el de los ladrones", "El banco es el de los ladrones."),
    )
    for case in lies:
        assert grounded(case) == RejectionReason.UNSUPPORTED, case


def test_the_detail_of_a_refusal_names_what_nobody_said() -> None:
    case = one(
        "The fee is 1100.", "The fee is 1100", "1,100 Australian dollars", "The fee is 1,100 Australian dollars."
    )
    [rejection] = refusals(case)
    assert rejection.detail.startswith("Australian in the statement or value: ")


def test_what_is_taken_back_must_be_named_or_answered() -> None:
    for case, is_kept in TAKEN_BACK:
        for act in (SpeechAct.RETRACT, SpeechAct.ERASE):
            assert (grounded(case, act) is None) is is_kept, case


def test_dates_that_are_none_cost_one_candidate_not_the_answer() -> None:
    fact = {
        "kind": "entity",
        "subject": "user",
        "attribute": "home",
        "value": "Graz",
        "statement": "The user lives in Graz.",
        "evidence": [{"turn": 1, "quote": "I live in Graz"}],
    }
    wrong = [{**fact, name: text} for name in ("valid_from", "valid_to") for text in IMPOSSIBLE_DATES]
    answer = Answer.model_validate({"facts": [*wrong, {**fact, "valid_from": "2026-03-01"}, fact]})
    turns = (Turn(1, "user", P, "I live in Graz.", NOON),)
    transcript = Transcript(turns, "test", humans=("user",))
    outcome = ground(answer.facts, transcript, scope=MIRA, session_id="s", owners=("user",))
    assert [said.valid_from and said.valid_from.date() for said in outcome.assertions] == [date(2026, 3, 1), None]
    assert {rejection.reason for rejection in outcome.rejections} == {RejectionReason.BAD_TIME}
    assert len(outcome.rejections) == len(wrong)


async def test_a_session_keeps_a_bounded_number_of_facts_and_shows_the_others() -> None:
    cities = [f"City{number}" for number in range(40)]
    message = {"type": "UserMessage", "source": "user", "content": " ".join(f"I like {city}." for city in cities)}
    state = {"type": "AssistantAgentState", "llm_context": {"messages": [message]}}
    proposed = [
        Candidate(
            kind=Kind.ENTITY,
            subject="user",
            attribute="likes",
            value=city,
            statement=f"The user likes {city}.",
            evidence=[Citation(turn=1, quote=f"I like {city}")],
        )
        for city in cities
    ]
    async with Store("sqlite://", privacy=Privacy(facts_per_session=25)) as store:
        await store.migrate()
        saved = Saved(MIRA, "monday", state=state, started_at=NOON)
        outcome = await process_session(store, saved, extractor=OracleExtractor({"I like": proposed}))
        facts = await store.read(lambda db: lookup.read_facts(db, MIRA, at=NOON))
        shown = await store.read(lambda db: lookup.read_rejected_candidates(db, MIRA, "monday"))
    assert (len(facts), outcome.rejected) == (25, {"too_many": 15})
    assert [statement for _, statement, _ in shown] == [f"The user likes {city}." for city in cities[25:]]


# Each guard that is planted weaker is seen


def supports_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(grounding, "_check_support", lambda *_: None)


def knows_no_names(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quote_support, "unsaid_names_and_numbers", lambda *_: [])


def accepts_any_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quote_support, "accepts", lambda _: True)


def accepts_no_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quote_support, "accepts", lambda _: False)


def computes_any_date(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(said_words.SaidWords, "has_time_or_number", True)


def takes_any_year(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(grounding, "FIRST_YEAR", 1)


def takes_back_what_nobody_named(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(grounding, "withdrawal_support", lambda *_: quote_support.Support.FULL)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (supports_everything, test_what_the_quoted_sentences_do_not_say_is_refused),
        (knows_no_names, test_what_the_quoted_sentences_do_not_say_is_refused),
        (computes_any_date, test_what_the_quoted_sentences_do_not_say_is_refused),
        (accepts_any_answer, test_an_agents_words_count_only_if_a_person_accepts_them),
        (accepts_no_answer, test_an_agents_words_count_only_if_a_person_accepts_them),
        (takes_any_year, test_dates_that_are_none_cost_one_candidate_not_the_answer),
        (takes_back_what_nobody_named, test_what_is_taken_back_must_be_named_or_answered),
    ],
)
def test_a_weakened_guard_is_seen(plant: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        check()
