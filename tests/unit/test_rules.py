"""The offline extractor: what it reads in a sentence, and what it must not read."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Usage, Window
from afterword.extractors.quote_search import find_quote
from afterword.extractors.rules import RulesExtractor
from afterword.extractors.rules.extractor import find_candidates
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
        ("I'd rather take the train.", "user", "preferred_train", "take the train",
         "The user would rather take the train."),
        ("I always take the aisle.", "user", "seat", "the aisle", "The user always takes the aisle."),
        ("I love hiking.", "user", "hiking", "hiking", "The user loves hiking."),
        ("We can't stand fennel.", "user", "fennel", "can't stand fennel", "The user cannot stand fennel."),
        ("I don't drink wine.", "user", "wine", "don't drink wine", "The user does not drink wine."),
        ("I never drink alcohol on weekdays.", "user", "alcohol", "never drink alcohol on weekdays",
         "The user never drinks alcohol on weekdays."),
        ("My name is Ada.", "user", "name", "Ada", "The user's name is Ada."),
        ("Hi, I'm Ada Brandt.", "user", "name", "Ada Brandt", "The user's name is Ada Brandt."),
        ("Please call me Bea.", "user", "called", "Bea", "The user wants to be called Bea."),
        ("I'm a nurse.", "user", "job", "nurse", "The user is a nurse."),
        ("I work at Corvid Labs.", "user", "employer", "Corvid Labs", "The user works at Corvid Labs."),
        ("I live in Ghent.", "user", "home", "Ghent", "The user lives in Ghent."),
        ("I live in Norway.", "user", "country", "Norway", "The user lives in Norway."),
        ("We're based in Malmö.", "user", "home", "Malmö", "The user is based in Malmö."),
        ("I moved to Leeds last week.", "user", "home", "Leeds", "The user moved to Leeds."),
        ("I speak Dutch.", "user", "language", "Dutch", "The user speaks Dutch."),
        ("I'm vegan.", "user", "diet", "vegan", "The user is vegan."),
        ("I'm allergic to walnuts.", "user", "allergy", "walnuts", "The user is allergic to walnuts."),
        ("Nils is allergic to walnuts.", "Nils", "allergy", "walnuts", "Nils is allergic to walnuts."),
        ("Nils has coeliac disease.", "Nils", "condition", "coeliac disease", "Nils has coeliac disease."),
        ("My wife is called Runa.", "Runa", "relation", "wife", "Runa is the user's wife."),
        ("My wife is called Zara, not Sara.", "Zara", "relation", "wife", "Zara is the user's wife."),
        ("My dog is Max, not Rex.", "Max", "relation", "dog", "Max is the user's dog."),
        ("My husband is vegan.", "the user's husband", "diet", "vegan", "The user's husband is vegan."),
        ("I have two sons.", "user", "number_of_sons", "two sons", "The user has two sons."),
        ("My favourite colour is teal.", "user", "favorite_color", "teal", "The user's favourite colour is teal."),
        ("Our router is a Corvid 75.", "user", "router", "a Corvid 75", "The user's router is a Corvid 75."),
        ("We go with Postgres then.", "user", "postgre", "Postgres", "The user decided on Postgres."),
        ("We decided to use MySQL for the ledger.", "user", "ledger", "MySQL for the ledger",
         "The user decided to use MySQL for the ledger."),
        ("We decided against MongoDB.", "user", "mongodb", "against MongoDB", "The user decided against MongoDB."),
        ("Always quote prices in euros.", "user", "price", "always quote prices in euros",
         "The user wants the assistant to always quote prices in euros."),
        ("Never send SMS.", "user", "sms", "never send SMS", "The user wants the assistant to never send SMS."),
        ("Please always keep your answers short.", "user", "short", "always keep your answers short",
         "The user wants the assistant to always keep its answers short."),
        ("Never mention my ex.", "user", "ex", "never mention their ex",
         "The user wants the assistant to never mention their ex."),
        ("I've been vegan since 2019.", "user", "diet", "vegan", "The user has been vegan."),
        ("I swim on Thursdays.", "user", "swim", "swim on Thursdays", "The user swims on Thursdays."),
    ],
)  # fmt: skip
def test_a_sentence_is_read(text: str, subject: str, attribute: str, value: str, statement: str) -> None:
    assert [(one.subject, one.attribute, one.value, one.statement) for one in said(text)] == [
        (subject, attribute, value, statement)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "If I were vegan, what would I eat?",
        "Hypothetically, I live in Rome.",
        "Maybe I prefer tea.",
        "One day I live in Lisbon.",
        "Imagine I live in Rome.",
        "Do I prefer window seats?",
        "I just LOVE waiting in queues, haha.",
        "I love queues ;)",
        "I prefer drinking a lawn. 🙄",
        "I'm allergic to Mondays.",
        "My colleague Dorte says I prefer trains.",
        "According to Bo I live in Rome.",
        "Today I prefer tea.",
        "Right now I live in a tent.",
        'She wrote "I prefer window seats".',
        'She wrote "Hello. I live in Rome. Bye."',
        "“I live in Rome and I love it.”",
        "> I prefer window seats.",
        "```\nI prefer window seats.\n```",
        "Fine.\n\n---- Forwarded message ----\nI prefer window seats.",
        "On Mon, 9 March 2026 Bo wrote:\nI prefer window seats.",
        "Translate this:\n\nI live in Porto.\n\nI am vegetarian.",
        "Please proofread the following text. I live in Porto.",
        "Here is Anna's mail:\nHi, I live in Porto. I am allergic to nuts.",
        "Dear Jonas,\n\nI live in Porto.\n\nBest, Anna",
        "def f():\n    # I prefer tabs",
        "For example, I prefer window seats.",
        "My password is always Krabbe123.",
        "My API key is sk-test-51Habc0000000000000000 and I always use it.",
        "Let's pretend: I live in Rome.",
        "I'll play the examiner. I prefer short theses.",
        "I never mind that.",
        "I'm allergic to stupid questions.",
        "I'm allergic to bad coffee.",
        "I like it.",
        "Never give up!",
        "No worries.",
        "Ich wohne in Bremen und nehme immer den Zug.",
        "{'attribute': 'I prefer window seats'}",
        "",
    ],
)
def test_what_was_not_stated_is_not_read(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.HUMAN])
def test_only_people_are_read(role: Role) -> None:
    turn = Turn(1, "user", role, "I prefer window seats.", SAID_AT)
    assert find_candidates(Window(1, (turn,), (), ("user",), ("user",))) == []


@pytest.mark.parametrize(
    "text",
    ["\ufeffI like tea.", "I like te\u200ba.", "I like\u2060 tea.", "I\u00a0like\u00a0tea.", "I like \u202atea\u202c."],
)
def test_invisible_characters_and_hard_blanks_change_nothing(text: str) -> None:
    [found] = said(text)
    assert (found.value, found.statement) == ("tea", "The user likes tea.")
    assert find_quote(found.evidence[0].quote, text)


def test_a_sentence_that_is_not_wholly_understood_gives_nothing() -> None:
    assert said("I live in Oslo with.") == []
    assert said("I live in Oslo, my brother claims.") == []


def test_the_rest_of_a_sentence_is_left_out_where_it_cannot_change_the_meaning() -> None:
    assert [one.value for one in said("I live in Oslo which means the winters are dark.")] == ["Oslo"]
    assert [one.value for one in said("I'm so glad - we moved to Cork, and everybody is happy.")] == ["Cork"]
    assert said("I live in Oslo, or so they say.") == []
    assert said("I live in Oslo, but not for long.") == []
    assert said("I'm allergic to nuts, properly allergic.") == []
    assert [one.statement for one in said("My wife and I love opera.")] == ["The user loves opera."]
    assert said("Nora from work and I love opera.") == []


def test_the_context_is_not_read_again() -> None:
    context = Turn(1, "user", Role.HUMAN, "I prefer window seats.", SAID_AT)
    turn = Turn(2, "user", Role.HUMAN, "I like tea.", SAID_AT)
    [found] = find_candidates(Window(2, (turn,), (context,), ("user",), ("user",)))
    assert (found.value, found.evidence[0].turn) == ("tea", 2)


def test_a_correction_takes_the_place_of_what_it_corrects() -> None:
    found = said("I live in Oslo.", "I like tea.", "Sorry, I meant that I live in Bergen.")
    assert [(one.value, one.cue) for one in found] == [("tea", None), ("Bergen", Cue.CORRECTION)]


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("My shell is fish now.", Cue.CHANGE),
        ("I now live in Oslo.", Cue.CHANGE),
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
        ("I don't use Emacs any more.", SpeechAct.RETRACT, "Emacs"),
        ("I no longer drink coffee.", SpeechAct.RETRACT, "drink coffee"),
        ("I've stopped smoking.", SpeechAct.RETRACT, "smoke"),
        ("I quit my job at Shell.", SpeechAct.RETRACT, "Shell"),
        ("Stop using emojis.", SpeechAct.RETRACT, "always use emojis"),
        ("Don't call me Bob.", SpeechAct.RETRACT, "Bob"),
    ],
)
def test_what_is_taken_back_is_read_as_such(text: str, act: SpeechAct, value: str) -> None:
    assert [(one.act, one.value) for one in said(text)] == [(act, value)]


@pytest.mark.parametrize("text", ["Forget it.", "Forget that you have doubts.", "Delete the last row."])
def test_no_topic_no_erasure(text: str) -> None:
    assert said(text) == []


def test_the_budget_of_a_trip_is_limited_to_it() -> None:
    [found] = said("Our budget is at most 1500 NOK for the trip.")
    assert (found.attribute, found.limited_to) == ("budget", "the trip")


def test_a_switch_ends_what_it_names() -> None:
    found = said("We switched from PostgreSQL to MySQL.")
    assert [(one.act, one.value) for one in found] == [(SpeechAct.RETRACT, "PostgreSQL"), (SpeechAct.STATE, "MySQL")]


def test_days_set_when_something_holds() -> None:
    [until] = said("I live in Graz until 12 June.")
    assert (until.value, until.valid_to, until.statement) == ("Graz", date(2026, 6, 12), "The user lives in Graz.")
    [planned] = said("I'm moving to Bergen on 1 May.")
    assert (planned.attribute, planned.value, planned.valid_from) == ("home", "Bergen", date(2026, 5, 1))


@pytest.mark.parametrize(
    ("text", "value", "valid_from", "valid_to"),
    [
        ("Until June I live in Linz.", "Linz", None, date(2026, 6, 30)),
        ("From July, I work at Bosch.", "Bosch", date(2026, 7, 1), None),
        ("In January I moved to Vienna.", "Vienna", date(2026, 1, 1), None),
        ("Next week I'm flying to Rome.", "is flying to Rome", date(2026, 3, 16), date(2026, 3, 22)),
        ("Every week I play chess.", "play chess every week", None, None),
        ("On Mondays I live in Graz.", "live in Graz on Mondays", None, None),
        ("Mondays I swim.", "swim Mondays", None, None),
    ],
)
def test_a_time_at_the_beginning_is_read_like_one_at_the_end(
    text: str, value: str, valid_from: date | None, valid_to: date | None
) -> None:
    assert [(one.value, one.valid_from, one.valid_to) for one in said(text)] == [(value, valid_from, valid_to)]


def test_a_time_at_the_beginning_is_no_part_of_a_place() -> None:
    assert said("In 2019 I moved to Vienna.") == []


@pytest.mark.parametrize("text", ["I moved to Vienna two weeks ago.", "Two weeks ago I moved to Vienna."])
def test_what_happened_in_the_past_holds_since_then(text: str) -> None:
    assert [(one.value, one.valid_from) for one in said(text)] == [("Vienna", date(2026, 2, 23))]


def test_a_plan_without_a_day_replaces_nothing() -> None:
    [found] = said("I'm moving to Bergen.")
    assert (found.kind, found.attribute, found.value) == (Kind.DECISION, "plan", "moving to Bergen")


def test_someone_who_is_not_the_owner_speaks_under_their_own_name() -> None:
    [found] = said("I prefer tea.", speaker="jonas", owners=())
    assert (found.subject, found.statement) == ("user", "Jonas prefers tea.")
    [joint] = said("We go with Postgres.", speaker="jonas", owners=())
    assert (joint.subject, joint.statement) == ("team", "The team decided on Postgres.")


def test_an_evidence_quote_is_the_clause_as_it_stands() -> None:
    _, found = said("Thanks. I like tea, and I’d rather   take the train.")
    assert found.evidence[0].quote == "and I'd rather   take the train."


async def test_the_extractor_costs_nothing_and_never_repairs() -> None:
    turn = Turn(1, "user", Role.HUMAN, "I prefer tea.", SAID_AT)
    window = Window(1, (turn,), (), ("user",), ("user",))
    extractor = RulesExtractor()
    extraction = await extractor.extract(window)
    assert [one.value for one in extraction.candidates] == ["tea"]
    assert extraction.usage == Usage()
    assert (await extractor.repair(window, [])).candidates == ()
    assert extractor.version == "rules-4"
