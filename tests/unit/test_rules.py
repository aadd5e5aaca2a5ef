"""The offline extractor: what it reads in a sentence, and what it must not read."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Usage, Window
from afterword.extractors.rules import RulesExtractor
from afterword.extractors.rules.extractor import find_candidates
from afterword.extractors.slot_relation import SINGLE_VALUED
from afterword.facts.assertions import Cue, Kind, SpeechAct
from afterword.facts.transcripts import Role, Turn

SAID_AT = datetime(2026, 3, 9, 8, 0, tzinfo=UTC)


def said(*texts: str, speaker: str = "user", owners: tuple[str, ...] = ("user",)) -> list[Candidate]:
    turns = tuple(Turn(place, speaker, Role.HUMAN, text, SAID_AT) for place, text in enumerate(texts, start=1))
    return find_candidates(Window(1, turns, (), owners, (speaker,)))


@pytest.mark.parametrize(
    ("text", "subject", "attribute", "value", "statement"),
    [
        ("I prefer window seats.", "user", "seat", "window seats", "The user prefers window seats."),
        ("I'd rather take the train.", "user", "train", "take the train", "The user would rather take the train."),
        ("I always take the aisle.", "user", "seat", "take the aisle", "The user always takes the aisle."),
        ("I love hiking.", "user", "hiking", "hiking", "The user loves hiking."),
        ("We can't stand fennel.", "user", "fennel", "fennel", "The user cannot stand fennel."),
        ("I don't drink wine.", "user", "wine", "drink wine", "The user does not drink wine."),
        ("I never eat before noon.", "user", "eat", "eat before noon", "The user never eats before noon."),
        ("Hi, I'm Ada Brandt.", "user", "name", "Ada Brandt", "The user's name is Ada Brandt."),
        ("My name is Ada.", "user", "name", "Ada", "The user's name is Ada."),
        ("I'm a nurse.", "user", "job", "nurse", "The user is a nurse."),
        ("I work at Corvid Labs.", "user", "employer", "Corvid Labs", "The user works at Corvid Labs."),
        ("I live in Ghent.", "user", "home", "Ghent", "The user lives in Ghent."),
        ("We're based in Malmö.", "user", "home", "Malmö", "The user is based in Malmö."),
        ("I moved to Leeds last week.", "user", "home", "Leeds", "The user moved to Leeds."),
        ("I speak Dutch.", "user", "language", "Dutch", "The user speaks Dutch."),
        ("I'm vegan.", "user", "diet", "vegan", "The user is vegan."),
        ("I'm allergic to walnuts.", "user", "allergy", "walnuts", "The user is allergic to walnuts."),
        ("Nils is allergic to walnuts.", "Nils", "allergy", "walnuts", "Nils is allergic to walnuts."),
        ("Nils has coeliac disease.", "Nils", "condition", "coeliac disease", "Nils has coeliac disease."),
        ("My wife Runa is a surgeon.", "Runa", "relation", "wife", "Runa is the user's wife."),
        ("My favourite editor is Helix.", "user", "editor", "Helix", "The user's favourite editor is Helix."),
        ("Our router is a Corvid 75.", "user", "router", "a Corvid 75", "The user's router is a Corvid 75."),
        ("At most 90 a night.", "user", "budget_per_night", "90", "The user's limit: at most 90 a night."),
        ("120 words at most.", "user", "max_word", "120 words", "The user's limit: 120 words at most."),
        ("We go with Postgres then.", "user", "choice", "Postgres", "The user goes with Postgres."),
        ("Let's go with Plan B.", "user", "choice", "Plan B", "The user will go with Plan B."),
        ("We decided on two releases.", "user", "choice", "two releases", "The user decided on two releases."),
        ("Book Casa Verde.", "user", "choice", "Casa Verde", "The user wants to book Casa Verde."),
        ("Always quote prices in euros.", "user", "price", "Always quote prices in euros",
         "The user wants the assistant to always quote prices in euros."),
        ("Never send SMS.", "user", "sms", "Never send SMS", "The user wants the assistant to never send SMS."),
        ("No emoji, not ever.", "user", "emoji", "No emoji, not ever", "The user wants no emoji, not ever."),
        ("Payment: 30 days, never in advance.", "user", "payment", "30 days, never in advance",
         "The user's rule for payment: 30 days, never in advance."),
        ("Not on Fridays.", "user", "schedule", "Not on Fridays", "The user's schedule: not on Fridays."),
        ("We're closed on Mondays.", "user", "closed", "closed on Mondays", "The user is closed on Mondays."),
        ("I swim on Thursdays.", "user", "swim", "swim on Thursdays", "The user swims on Thursdays."),
        ("Flour comes from Hall Mill.", "Flour", "source", "Hall Mill", "Flour comes from Hall Mill."),
        ("The newsletter is called Owl Post.", "newsletter", "name", "Owl Post", "The newsletter is called Owl Post."),
        ("The cluster runs on Kestrel 9.", "user", "platform", "Kestrel 9", "The cluster runs on Kestrel 9."),
        ("Deadline is the last Friday of May.", "user", "deadline", "the last Friday of May",
         "The user's deadline is the last Friday of May."),
    ],
)  # fmt: skip
def test_a_sentence_is_read(text: str, subject: str, attribute: str, value: str, statement: str) -> None:
    found = said(text)
    assert [(one.subject, one.attribute, one.value, one.statement) for one in found] == [
        (subject, attribute, value, statement)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "If I were vegan, what would I eat?",
        "Hypothetically, I live in Rome.",
        "Maybe I prefer tea.",
        "One day I live in Lisbon.",
        "If we ever win the lottery we go with Gulfstream.",
        "Imagine I live in Rome.",
        "I think my limit is max 20 a night.",
        "Do I prefer window seats?",
        "I just LOVE waiting in queues.",
        "I love queues, haha.",
        "I love queues ;)",
        "I prefer drinking a lawn. 🙄",
        "Yeah right, I prefer queues.",
        "Sure, and I always take the helicopter.",
        "My colleague Dorte says I prefer trains.",
        "My friend Leo hates Mondays.",
        "Leo thinks we go with Postgres.",
        "According to Bo I live in Rome.",
        "Bo wrote that we're closed on Mondays.",
        "Today I prefer tea.",
        "I'm craving crisps, I love crisps.",
        "Right now I live in a tent.",
        'She wrote "I prefer window seats".',
        "“I live in Rome and I love it.”",
        "> I prefer window seats.",
        "```\nI prefer window seats.\n```",
        "Fine.\n\n---- Forwarded message ----\nI prefer window seats.",
        "On Mon, 9 March 2026 Bo wrote:\nI prefer window seats.",
        "My password is always Krabbe123.",
        "My API key is sk-test-51Habc0000000000000000 and I always use it.",
        "I always pay with 4111 1111 1111 1111.",
        "Let's pretend: I live in Rome.",
        "I'll play the examiner. I prefer short theses.",
        "I never mind that.",
        "I like it.",
        "We take that.",
        "No idea.",
        "No problem at all.",
        "No worries.",
        "Always great to hear!",
        "Question: is it closed on Mondays or not at all?",
        "Ich wohne in Bremen und nehme immer den Zug.",
        "{'attribute': 'I prefer window seats'}",
        "The weather is nice.",
        "",
    ],
)
def test_what_was_not_stated_is_not_read(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.HUMAN])
def test_only_people_are_read(role: Role) -> None:
    turn = Turn(1, "user", role, "I prefer window seats.", SAID_AT)
    assert find_candidates(Window(1, (turn,), (), ("user",), ("user",))) == []


def test_the_context_is_not_read_again() -> None:
    context = Turn(1, "user", Role.HUMAN, "I prefer window seats. My wife Runa is here.", SAID_AT)
    turn = Turn(2, "user", Role.HUMAN, "Runa can't stand fennel.", SAID_AT)
    [found] = find_candidates(Window(2, (turn,), (context,), ("user",), ("user",)))
    assert (found.subject, found.evidence[0].turn) == ("Runa", 2)


def test_a_role_lasts_until_it_is_left() -> None:
    """A rehearsal spans several turns; what the role wants is nobody's preference."""
    found = said("Stay in the role. I start.", "I prefer short theses.", "OK out of the role.", "I prefer tea.")
    assert [one.statement for one in found] == ["The user prefers tea."]


def test_a_correction_takes_the_place_of_what_it_corrects() -> None:
    found = said("Nils is allergic to walnuts.", "Sorry, not walnuts: it's cashews that Nils is allergic to.")
    assert [(one.value, one.cue) for one in found] == [("cashews", Cue.CORRECTION)]


def test_a_number_that_is_denied_is_dropped() -> None:
    found = said("We do about 32,000 visits a day.", "Oops, 3.2k visits a day, not 32k.")
    assert [one.value for one in found] == ["3.2k visits a day"]


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("My shell is fish now.", Cue.CHANGE),
        ("From now on I take the train.", Cue.CHANGE),
        ("I've switched to Helix.", Cue.CHANGE),
        ("Actually, I prefer tea.", Cue.CORRECTION),
        ("I prefer tea.", None),
    ],
)
def test_the_speakers_marks_are_kept(text: str, cue: Cue | None) -> None:
    assert [one.cue for one in said(text)] == [cue]


@pytest.mark.parametrize(
    ("text", "act", "value"),
    [
        ("Please forget what I said about my trip.", SpeechAct.ERASE, "my trip"),
        ("Forget that weight thing I told you.", SpeechAct.ERASE, "weight"),
        ("What I told you about Runa was wrong of me. Delete that.", SpeechAct.ERASE, "Runa"),
        ("I don't use Emacs any more.", SpeechAct.RETRACT, "Emacs"),
        ("I no longer drink coffee.", SpeechAct.RETRACT, "drink coffee"),
        ("I've stopped smoking.", SpeechAct.RETRACT, "smoking"),
        ("We're off the oat milk.", SpeechAct.RETRACT, "the oat milk"),
    ],
)
def test_what_is_taken_back_is_read_as_such(text: str, act: SpeechAct, value: str) -> None:
    assert [(one.act, one.value) for one in said(text)] == [(act, value)]


@pytest.mark.parametrize("text", ["Forget it.", "Forget that you have doubts.", "Delete the last row."])
def test_no_topic_no_erasure(text: str) -> None:
    assert said(text) == []


def test_dates_are_resolved_and_written_out() -> None:
    [found] = said("From next Tuesday on we use Corvid Bank for everything.", "Hm.")
    assert found.valid_from is None or found.valid_from > SAID_AT.date()
    [closed] = said("Both rooms are closed Thursday and Friday next week.")
    assert (closed.valid_from, closed.valid_to) == (date(2026, 3, 19), date(2026, 3, 20))
    assert closed.statement.endswith("(2026-03-19 to 2026-03-20).")


def test_a_registration_is_an_event_on_its_day() -> None:
    [found] = said("I signed up for the Fen Half on 19 April 2026.")
    assert (found.kind, found.valid_from, found.valid_to) == (Kind.DECISION, date(2026, 4, 19), date(2026, 4, 19))


def test_a_pronoun_is_the_one_person_the_paragraph_has_named() -> None:
    text = "Odd Berg, lighting assistant. He's in on Tuesdays only."
    assert [one.subject for one in said(text)] == ["Odd Berg", "Odd Berg"]
    assert [one.subject for one in said("My wife Runa and I travel. She's vegetarian.")] == ["Runa", "Runa"]


def test_a_pronoun_with_two_persons_before_it_is_left_alone() -> None:
    assert all(one.attribute != "diet" for one in said("My wife Runa and my son Nils eat out. He's vegetarian."))


def test_someone_who_is_not_the_owner_speaks_under_their_own_name() -> None:
    [found] = said("I prefer tea.", speaker="jonas", owners=())
    assert (found.subject, found.statement) == ("user", "Jonas prefers tea.")
    [joint] = said("We go with Postgres.", speaker="jonas", owners=())
    assert (joint.subject, joint.statement) == ("team", "The team goes with Postgres.")


def test_an_evidence_quote_is_the_clause_as_it_stands() -> None:
    text = "Hm, one thing:  I’d rather   take the train; thanks"
    [found] = said(text)
    assert found.evidence[0].quote == "I’d rather   take the train"


def test_a_wish_about_names_never_lands_in_the_slot_of_a_name() -> None:
    """The judge replaces single values: "start names with x" must not retire what someone is called."""
    [found] = said("Always start method names with x.")
    assert found.attribute not in SINGLE_VALUED


async def test_the_extractor_costs_nothing_and_never_repairs() -> None:
    turn = Turn(1, "user", Role.HUMAN, "I prefer tea.", SAID_AT)
    window = Window(1, (turn,), (), ("user",), ("user",))
    extractor = RulesExtractor()
    extraction = await extractor.extract(window)
    assert [one.value for one in extraction.candidates] == ["tea"]
    assert extraction.usage == Usage()
    assert (await extractor.repair(window, [])).candidates == ()
    assert extractor.version == "rules-1"
