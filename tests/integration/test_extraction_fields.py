"""The newer fields of an extraction's answer, from the reply of an honest or a lying model to the store."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text
from sqlmodel import select

from afterword import ModelClient, ModelExtractor, ModelSettings, Saved, Scope, SessionOutcome, process_session
from afterword.extractors.candidates import Answer, Candidate, Citation
from afterword.extractors.extractor import Extraction
from afterword.extractors.testing import Reply, ScriptedEndpoint, facts_reply
from afterword.extractors.words_called_private import (
    MOST_NAMED,
    MOST_OFF_RECORD,
    WordsCalledPrivate,
    hide_as_stored,
    hide_in_state,
)
from afterword.facts.assertions import Assertion, Kind
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.policy import Privacy
from afterword.privacy.record_requests import Markers
from afterword.store import lookup, runs, sessions
from afterword.store.database.engine import Store
from afterword.store.tables import RunRow

MIRA = Scope.user("mira")
MONDAY = datetime(2026, 3, 2, 10, tzinfo=UTC)


def state(*messages: str) -> dict[str, object]:
    """The saved state of a conversation; what an agent says begins with "agent: "."""
    said: list[dict[str, object]] = [
        {"type": "AssistantMessage", "source": "helper", "content": text.removeprefix("agent: ")}
        if text.startswith("agent: ")
        else {"type": "UserMessage", "source": "user", "content": text}
        for text in messages
    ]
    return {"type": "AssistantAgentState", "llm_context": {"messages": said}}


def fact(value: str, statement: str, *cited: tuple[int, str], **more: Any) -> Candidate:
    return Candidate(
        kind=more.pop("kind", Kind.ENTITY),
        subject=more.pop("subject", "user"),
        attribute=more.pop("attribute", "note"),
        value=value,
        statement=statement,
        evidence=[Citation(turn=turn, quote=quote) for turn, quote in cited],
        **more,
    )


async def process(store: Store, reply: Reply, *messages: str, **more: Any) -> SessionOutcome:
    saved = Saved(MIRA, "monday", state=state(*messages) if messages else None, started_at=MONDAY)
    with ScriptedEndpoint(lambda request: reply) as endpoint:
        async with ModelClient(
            ModelSettings("scripted", endpoint.base_url, max_retries=0, mode="json_schema")
        ) as client:
            return await process_session(store, saved, extractor=ModelExtractor(client), **more)


async def assertions(store: Store) -> tuple[Assertion, ...]:
    return tuple(await store.read(lambda transaction: lookup.read_knowledge(transaction, MIRA).assertions))


@pytest.fixture
async def store(tmp_path: Path) -> Any:
    async with Store(f"sqlite:///{tmp_path}/facts.db") as opened:
        await opened.migrate()
        yield opened


BOOKED = (2, "Casa Alta"), (3, "Yes, please")
TALK = ("Find me a hotel in Faro.", "agent: Shall I book Casa Alta for you?", "Yes, please.")


@pytest.mark.parametrize(("accepted_in", "refused"), [(3, {}), (None, {"not_accepted": 1}), (1, {"not_accepted": 1})])
async def test_an_agents_words_count_where_the_model_names_the_acceptance(
    store: Store, accepted_in: int | None, refused: dict[str, int]
) -> None:
    booked = fact("Casa Alta", "The user books Casa Alta.", *BOOKED, accepted_in=accepted_in)
    outcome = await process(store, facts_reply(booked), *TALK)
    assert outcome.rejected == refused
    assert len(await assertions(store)) == 1 - len(refused)


async def test_a_model_cannot_make_an_acceptance_of_other_words(store: Store) -> None:
    booked = fact("Casa Alta", "The user books Casa Alta.", (2, "Casa Alta"), (3, "rather not"), accepted_in=3)
    outcome = await process(store, facts_reply(booked), *TALK[:2], "I would rather not.")
    assert outcome.rejected == {"not_accepted": 1}


async def test_a_fact_is_flagged_by_the_model_or_by_its_words(store: Store) -> None:
    said = "I carry a card for the ambulance crew. I am allergic to nuts. I like tea."
    facts = (
        fact("card", "The user carries a card for the ambulance crew.", (1, "I carry a card"), flagged=True),
        fact("nuts", "The user is allergic to nuts.", (1, "I am allergic to nuts"), attribute="allergy"),
        fact("tea", "The user likes tea.", (1, "I like tea"), attribute="drink"),
    )
    await process(store, facts_reply(*facts), said)
    assert {each.value: each.is_flagged for each in await assertions(store)} == {
        "card": True,
        "nuts": True,
        "tea": False,
    }


@pytest.mark.parametrize(("former", "stored"), [("ledgerd", "ledgerd"), ("postgresd", None), ("user", None)])
async def test_a_former_name_is_stored_if_it_was_said(store: Store, former: str, stored: str | None) -> None:
    said = "Our ledgerd is called billing-core now."
    name = fact("billing-core", "billing-core was ledgerd.", (1, said), subject="billing-core", former_name=former)
    outcome = await process(store, facts_reply(name), said)
    assert [each.former_name for each in await assertions(store)] == ([stored] if stored else [])
    assert outcome.rejected == ({} if stored else {"unsupported": 1})


LOCKER = "The locker says Zz7-quartz-19 when you ask nicely. I live in Freiburg."
HOME = fact("Freiburg", "The user lives in Freiburg.", (1, "I live in Freiburg"), attribute="home_city")
LOCK = fact("Zz7-quartz-19", "The user's locker says Zz7-quartz-19.", (1, "The locker says Zz7-quartz-19"))


def named(*secrets: tuple[int, str], facts: tuple[Candidate, ...] = (HOME, LOCK)) -> Reply:
    cited = [Citation(turn=turn, quote=quote) for turn, quote in secrets]
    return Reply(Answer(facts=list(facts), secrets=cited).model_dump_json())


async def stored_words(store: Store) -> str:
    """Everything that the store holds."""
    with store.reading() as transaction:
        names = inspect(transaction.connection()).get_table_names()
        rows = [transaction.connection().execute(text(f"SELECT * FROM {name}")).all() for name in names]
    return repr(rows)


async def test_a_named_secret_is_masked_in_all_that_is_stored(store: Store) -> None:
    reply = named((1, "Zz7-quartz-19"))
    talk = (LOCKER, "agent: I noted Zz7-quartz-19.")
    outcome = await process(store, reply, *talk)
    assert [each.value for each in await assertions(store)] == ["Freiburg"]
    assert outcome.rejected == {"secret": 1}
    assert outcome.transcript.skipped["secrets masked"] == 2
    assert outcome.usage.calls == 1, "a window whose secrets are masked is not read again"
    assert "quartz" not in await stored_words(store)
    [run] = await store.read(lambda transaction: runs.read_runs(transaction, MIRA))
    assert run.counts["named_secrets"] == 1
    [said] = await assertions(store)
    [evidence] = said.evidence
    assert evidence.start is not None
    assert outcome.transcript.turns[0].text[evidence.start :].startswith(evidence.quote)


async def test_a_session_with_a_named_secret_is_unchanged_when_it_is_read_again(store: Store) -> None:
    talk = (LOCKER, "agent: I noted Zz7-quartz-19.")
    await process(store, named((1, "Zz7-quartz-19")), *talk)
    again = await process(store, facts_reply(), *talk)
    assert (again.run_id, again.usage.calls) == (None, 0)
    grown = await process(store, facts_reply(HOME), *talk, "So Zz7-quartz-19 it is, as always.")
    assert len(grown.transcript.turns) == 3
    assert "quartz" not in await stored_words(store)


async def test_a_secret_that_is_named_in_a_dry_run_is_not_stored_either(store: Store) -> None:
    await process(store, named((1, "Zz7-quartz-19")), LOCKER, apply=False)
    with store.reading() as transaction:
        [proposal] = transaction.exec(select(RunRow.transcript)).all()
    assert proposal is not None
    assert "quartz" not in zlib.decompress(proposal).decode() + await stored_words(store)


@pytest.mark.parametrize(
    "lie",
    [
        (1, "nicely"),
        (1, "The locker says Zz7-quartz-19 when you ask"),
        (1, "not there at all"),
        (1, "burg"),
        (1, "in"),
        (9, "Freiburg"),
        (1, ""),
    ],
)
async def test_a_model_cannot_blank_ordinary_words_by_naming_them(store: Store, lie: tuple[int, str]) -> None:
    outcome = await process(store, named(lie, facts=(HOME,)), LOCKER)
    assert outcome.transcript.turns[0].text == LOCKER
    assert [each.value for each in await assertions(store)] == ["Freiburg"]
    [run] = await store.read(lambda transaction: runs.read_runs(transaction, MIRA))
    assert run.counts["named_secrets_not_masked"] == 1


async def test_a_name_that_is_called_a_secret_is_masked_where_it_was_named_alone_and_shown(store: Store) -> None:
    outcome = await process(store, named((1, "Freiburg"), facts=()), LOCKER, "Then I moved to Freiburg.")
    assert [turn.text for turn in outcome.transcript.turns] == [
        LOCKER.replace("Freiburg", "[redacted: named secret]"),
        "Then I moved to Freiburg.",
    ]
    assert outcome.transcript.skipped["secrets masked"] == 1


SEED = "walnut rescue opera bleak tunnel fiscal goat mirror adjust plunge sunny crater"


@pytest.mark.parametrize(
    ("words", "is_masked"),
    [(SEED, True), (SEED.removesuffix(" crater"), False), ("it showed me these and I " + SEED, False)],
)
async def test_a_seed_phrase_is_the_only_long_phrase_that_can_be_named(
    store: Store, words: str, is_masked: bool
) -> None:
    said = f"When I set up the ledger it showed me these and I {SEED}, on a napkin."
    outcome = await process(store, named((1, words), facts=()), said)
    assert (SEED not in outcome.transcript.turns[0].text) is is_masked


async def test_a_number_in_groups_can_be_named(store: Store) -> None:
    outcome = await process(
        store, named((1, "JX 48 21 07 C"), facts=()), "My member mark is JX 48 21 07 C, if they ask."
    )
    assert outcome.transcript.turns[0].text == "My member mark is [redacted: named secret], if they ask."


async def test_only_so_many_secrets_can_be_named(store: Store) -> None:
    codes = [f"Kx{number}-zebra" for number in range(MOST_NAMED + 5)]
    said = " ".join(f"The word {code} is it." for code in codes)
    outcome = await process(store, named(*((1, code) for code in codes), facts=()), said)
    assert outcome.transcript.skipped["secrets masked"] == MOST_NAMED


async def test_a_mask_is_never_masked_or_broken(store: Store) -> None:
    said = "My password is hunter2hunter! and the word Password is Password."
    outcome = await process(store, named((1, "[redacted: password]"), (1, "Password"), facts=()), said)
    assert outcome.transcript.turns[0].text.count("[redacted: ") == len(
        re.findall(r"\[redacted: [a-z ]+\]", outcome.transcript.turns[0].text)
    )


@pytest.mark.parametrize("former", [0, 1, 2])
def test_a_mask_is_found_again_where_the_beginning_of_a_state_is_missing(former: int) -> None:
    texts = ("Hello there.", "Nice day.", "Ab7-kiwi-33", "Thanks.")
    fresh = [Turn(number, "user", Role.HUMAN, words) for number, words in enumerate(texts, 1)]
    masked = named_in(fresh, (3, "Ab7-kiwi-33"))
    shown = hide_as_stored(fresh[former:], masked, Markers())
    assert [turn.text for turn in shown] == [turn.text for turn in masked[former:]]


def test_new_words_are_not_masked_where_a_secret_was_masked_in_a_turn_that_is_gone() -> None:
    said = ("The code for the door is Ab7-kiwi-33, as always.", "Thanks.")
    stored = [Turn(number, "user", Role.HUMAN, words) for number, words in enumerate(said, 1)]
    fresh = [stored[1], Turn(2, "user", Role.HUMAN, "The code for the door is on the fridge, as always.")]
    assert list(hide_as_stored(fresh, named_in(stored, (1, "Ab7-kiwi-33")), Markers())) == fresh


async def keep_state(store: Store, *messages: str) -> None:
    saved: dict[str, Any] = state(*messages)
    call = {"content": [{"id": "1", "name": "open", "arguments": json.dumps({"code": "\nZz7-quartz-19"})}]}
    saved["llm_context"]["messages"].append({**call, "type": "AssistantMessage", "source": "helper"})
    with store.writing() as transaction:
        sessions.save_state(transaction, MIRA, "monday", component="agent", state=saved, at=MONDAY, humans=["user"])


def kept_state(store: Store) -> dict[str, Any]:
    with store.reading() as transaction:
        return sessions.load_state(transaction, MIRA, "monday", "agent")


async def test_a_named_secret_is_masked_in_the_saved_state_too(store: Store) -> None:
    talk = (LOCKER, "agent: I noted Zz7-quartz-19.", "Then I moved to Freiburg.")
    await keep_state(store, *talk)
    before = kept_state(store)
    await process(store, named((1, "Zz7-quartz-19"), (1, "Freiburg"), facts=()))
    after = kept_state(store)
    assert "quartz" not in json.dumps(after)
    messages = [message["content"] for message in after["llm_context"]["messages"]]
    mask = "[redacted: named secret]"
    assert messages[:3] == [
        LOCKER.replace("Zz7-quartz-19", mask).replace("Freiburg", mask),
        f"I noted {mask}.",
        talk[2],
    ]
    assert json.loads(messages[3][0]["arguments"]) == {"code": f"\n{mask}"}
    shape = [sorted(message) for message in before["llm_context"]["messages"]]
    assert [sorted(message) for message in after["llm_context"]["messages"]] == shape
    assert (await process(store, facts_reply())).usage.calls == 0, "it is unchanged when it is read again"
    # An agent that goes on still knows the secret, and saves it again.
    await keep_state(store, *talk, "Bye.")
    await process(store, facts_reply())
    assert "quartz" not in json.dumps(kept_state(store)) + await stored_words(store)


async def test_a_state_without_a_named_secret_stays_as_it_is(store: Store) -> None:
    await keep_state(store, "I live in Freiburg.")
    before = kept_state(store)
    await process(store, named((1, "nicely"), facts=()))
    assert kept_state(store) == before


BESIDE = [
    ("entries Al Kilo9x Bo Zulu77!", ("Al Kilo9x", "Bo Zulu77!")),
    ("keys 12 34 56 78 AB 34 56", ("12 34 56 78", "AB 34 56")),
    ("34 56 opens 12 34 56 78 AB 34 56", ("12 34 56 78", "AB 34 56")),
    ("keys are Ab7, Kilo9x, Bo Zulu77!", ("Ab7, Kilo9x", "Bo Zulu77!")),
]


@pytest.mark.parametrize(("said", "secrets"), BESIDE)
async def test_secrets_of_several_words_beside_each_other_are_masked_wherever_they_are_stored(
    store: Store, said: str, secrets: tuple[str, ...]
) -> None:
    # A turn that shares some of their words stays as it is.
    talk = (said, "The number is 34 56, and Bo is fine.")
    await keep_state(store, *talk)
    first = await process(store, named(*((1, secret) for secret in secrets), facts=()))
    held = json.dumps(kept_state(store)) + await stored_words(store)
    assert not [secret for secret in secrets if secret in held]
    again = await process(store, facts_reply())
    assert (again.run_id, again.usage.calls) == (None, 0)
    assert again.transcript.turns == first.transcript.turns
    # An agent that goes on still knows the secrets, and saves and repeats them.
    await keep_state(store, *talk, *(f"So {secret} it is." for secret in secrets))
    grown = await process(store, facts_reply())
    texts = [turn.text for turn in grown.transcript.turns]
    assert [turn.text for turn in first.transcript.turns if turn.text not in texts] == []
    assert len(texts) == len(first.transcript.turns) + len(secrets)
    held = json.dumps(kept_state(store)) + await stored_words(store)
    assert not [secret for secret in secrets if secret in held]


@pytest.mark.parametrize(("said", "secrets"), BESIDE)
def test_secrets_beside_each_other_are_masked_in_other_strings_of_a_state(said: str, secrets: tuple[str, ...]) -> None:
    [masked] = named_in([Turn(1, "user", Role.HUMAN, said)], *((1, secret) for secret in secrets))
    state = {"part": said[2:], "arguments": [f"open {secret}" for secret in secrets], "other": "Bo is 34 years old."}
    after = hide_in_state(state, {said: masked.text}, [], Markers())
    assert after["other"] == state["other"]
    assert not [secret for secret in secrets if secret in json.dumps(after)]


def named_in(turns: Sequence[Turn], *secrets: tuple[int, str], off_record: frozenset[int] = frozenset()) -> Any:
    """Return the turns without what a model names in them."""
    private = WordsCalledPrivate(Privacy())
    cited = tuple(Citation(turn=turn, quote=quote) for turn, quote in secrets)
    private.add(Extraction((), secrets=cited, off_record=off_record), turns)
    return private.hide_in_turns(turns)


ASIDE = "This one you never heard: my brother Oskar drinks again. I live in Freiburg."
CONFIDING = (
    "I play the viola.",
    ASIDE,
    "agent: I am sorry about your brother Oskar. That is hard.",
    "Back to the viola: I play on Tuesdays.",
    "agent: Tuesdays it is. I hope Oskar comes to listen.",
)
VIOLA = fact("viola", "The user plays the viola.", (1, "I play the viola"), attribute="instrument")
BROTHER = fact("drinks", "The user's brother Oskar drinks.", (2, "my brother Oskar drinks again"), subject="Oskar")


def off_record(*turns: int, facts: tuple[Candidate, ...] = (VIOLA, BROTHER)) -> Reply:
    return Reply(Answer(facts=list(facts), off_record=list(turns)).model_dump_json())


async def test_a_turn_that_the_model_calls_off_the_record_is_hidden_with_its_answers(store: Store) -> None:
    await keep_state(store, *CONFIDING)
    outcome = await process(store, off_record(2))
    hidden = "[off the record]"
    shown = [CONFIDING[0], hidden, hidden, CONFIDING[3], hidden]
    assert [turn.text for turn in outcome.transcript.turns][:5] == shown
    assert [each.value for each in await assertions(store)] == ["viola"]
    assert (outcome.rejected, outcome.usage.calls) == ({"off_record": 1}, 1)
    assert "Oskar" not in json.dumps(kept_state(store)) + await stored_words(store)
    [run] = await store.read(lambda transaction: runs.read_runs(transaction, MIRA))
    assert run.counts["named_off_record"] == 1
    again = await process(store, facts_reply())
    assert (again.run_id, again.usage.calls) == (None, 0), "it is unchanged when it is read again"
    # An agent that goes on still knows it, and saves it again.
    await keep_state(store, *CONFIDING, "Bye.", "agent: Bye, and greet Oskar.")
    grown = await process(store, facts_reply())
    assert "Bye." in [turn.text for turn in grown.transcript.turns]
    assert "Oskar" not in json.dumps(kept_state(store)) + await stored_words(store)


@pytest.mark.parametrize("first", [0, 1])
async def test_a_hidden_turn_stays_hidden_where_another_one_is_off_the_record_later(store: Store, first: int) -> None:
    """Also if the state has lost its beginning, so that it begins with the hidden turn."""
    await process(store, off_record(2), *CONFIDING)
    later = ("Off the record: I am tired.", "agent: Rest then.", "Back on the record. I like tea.")
    grown = await process(store, facts_reply(), *CONFIDING[first:], *later)
    assert "Back on the record. I like tea." in [turn.text for turn in grown.transcript.turns]
    assert "Oskar" not in await stored_words(store)


async def test_a_secret_that_must_not_be_written_down_hides_no_other_words(store: Store) -> None:
    told = ("I play the viola. My password is hunter2hunter!, don't write that down.", LOCKER)
    cited = [Citation(turn=2, quote="Zz7-quartz-19")]
    await process(store, Reply(Answer(facts=[VIOLA], secrets=cited, off_record=[1, 2]).model_dump_json()), *told)
    assert [each.value for each in await assertions(store)] == ["viola"]
    assert not re.search("hunter|quartz", await stored_words(store))


async def test_a_dry_run_stores_nothing_that_the_model_calls_off_the_record(store: Store) -> None:
    await process(store, off_record(2), *CONFIDING, apply=False)
    with store.reading() as transaction:
        [proposal] = transaction.exec(select(RunRow.transcript)).all()
    assert proposal is not None
    assert "Oskar" not in zlib.decompress(proposal).decode() + await stored_words(store)


async def test_a_model_can_hide_few_turns_and_those_of_people_alone(store: Store) -> None:
    talk = [f"I play piece {number}." for number in range(MOST_OFF_RECORD + 5)]
    outcome = await process(store, off_record(*range(1, 100), facts=()), *talk, "agent: Well played.", "Thanks.")
    hidden = [turn.number for turn in outcome.transcript.turns if turn.text == "[off the record]"]
    assert hidden == list(range(1, MOST_OFF_RECORD + 1))
    [run] = await store.read(lambda transaction: runs.read_runs(transaction, MIRA))
    assert run.counts["named_off_record_not_hidden"] == 99 - MOST_OFF_RECORD


async def test_no_turn_is_hidden_where_off_the_record_is_turned_off(tmp_path: Path) -> None:
    async with Store(f"sqlite:///{tmp_path}/open.db", privacy=Privacy(markers=Markers((), ()))) as opened:
        await opened.migrate()
        outcome = await process(opened, off_record(2), *CONFIDING)
    assert [turn.text for turn in outcome.transcript.turns][1] == ASIDE


@pytest.mark.parametrize("missing", [0, 1])
def test_a_turn_stays_hidden_where_the_beginning_of_a_state_is_missing(missing: int) -> None:
    texts = ("Hello there.", "Never heard: Oskar drinks.", "Nice day.")
    fresh = [Turn(number, "user", Role.HUMAN, words) for number, words in enumerate(texts, 1)]
    hidden = named_in(fresh, off_record=frozenset({2}))
    assert [turn.text for turn in hide_as_stored(fresh[missing:], hidden, Markers())] == [
        turn.text for turn in hidden[missing:]
    ]
