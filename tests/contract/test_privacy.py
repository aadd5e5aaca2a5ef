"""Secrets and what is off the record reach no table, by no entry, on any database."""

from __future__ import annotations

import json
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlmodel import SQLModel

from afterword.errors import ArgumentInvalid
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.errors import EndpointMisconfigured
from afterword.extractors.extractor import Extraction, Usage, Window
from afterword.extractors.judge import Pair
from afterword.extractors.rules import RulesExtractor
from afterword.extractors.testing import OracleExtractor
from afterword.facts.assertions import Kind, Relation, Verdict
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.privacy.policy import OFF_THE_RECORD, SECRETS_MASKED, Privacy
from afterword.privacy.record_requests import HIDDEN, HIDDEN_FROM_HERE
from afterword.store import lookup, reviews, sessions
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry, FactEdit
from afterword.store.entries import add_entry
from hashes import without_hashes

LENA = Scope.user("lena")
AT = datetime(2026, 3, 1, tzinfo=UTC)
PASSWORD, KEY, DOOR = "Krabben-77-brot", "sk-proj-abcDEF123456ghiJKL789", "0815-4711"
SECRETS = (PASSWORD, KEY, DOOR)
Canonical = Callable[[Store, Scope], Awaitable[list[tuple[object, ...]]]]


def user(text: str) -> dict[str, Any]:
    return {"content": text, "source": "user", "type": "UserMessage"}


def agent(text: str, thought: str | None = None) -> dict[str, Any]:
    return {"content": text, "thought": thought, "source": "helper", "type": "AssistantMessage"}


def state(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": list(messages)}}


def saved(*messages: dict[str, Any], session_id: str = "a", **more: Any) -> Saved:
    return Saved(LENA, session_id, state=state(*messages), started_at=AT, ended_at=AT, **more)


CALL = {"id": "c1", "name": "login", "arguments": json.dumps({"password": PASSWORD, "api_key": KEY})}
RESULT = {"content": f"token={KEY}", "name": "login", "call_id": "c1", "is_error": False}
TALK = (
    user(f"I live in Graz. My wifi password is {PASSWORD}, and the alarm code is {DOOR}."),
    {"content": [CALL], "thought": f"I use {PASSWORD}", "source": "helper", "type": "AssistantMessage"},
    {"content": [RESULT], "type": "FunctionExecutionResultMessage"},
    agent(f"Noted: {PASSWORD} opens the wifi, {DOOR} the door."),
    {"content": f"Relevant memory content:\n1. The API key is {KEY}.", "type": "SystemMessage"},
)


async def everything(store: Store) -> str:
    """Whatever the tables hold, unpacked, and the bytes of the files."""
    found: list[object] = []
    with store.reading() as transaction:
        for table in SQLModel.metadata.sorted_tables:
            for row in transaction.connection().execute(select(table)):
                found += [_plain(value) for value in row]
    files = store.path.parent.glob(f"{store.path.name}*") if store.path else ()
    return without_hashes("\n".join([*map(str, found), *(path.read_bytes().decode("latin-1") for path in files)]))


def _plain(value: object) -> object:
    return zlib.decompress(value).decode() if isinstance(value, bytes) else value


async def assert_clean(store: Store, *secrets: str) -> None:
    held = await everything(store)
    for secret in secrets or SECRETS:
        assert secret not in held, secret


def leak(window: Window) -> list[Candidate]:
    """What a careless model proposes: the secret as a fact, one it made up, and quotes that stand nowhere."""
    quote = window.turns[0].text
    cited = [Citation(turn=1, quote=quote)]
    base = {"kind": Kind.ENTITY, "subject": "user", "attribute": "wifi", "evidence": cited}
    return [
        Candidate(**base, value=PASSWORD, statement=f"The wifi password is {PASSWORD}."),
        Candidate(**base | {"attribute": "api_key"}, value=KEY, statement="The user has a key."),
        Candidate(**base | {"evidence": [Citation(turn=1, quote=f"my key is {KEY}")]}, value="key", statement="A key."),
        Candidate(**base | {"attribute": "home"}, value="Graz", statement="The user lives in Graz."),
    ]


async def test_no_secret_of_a_session_reaches_a_table_or_a_prompt(store: Store) -> None:
    oracle = OracleExtractor(leak)
    outcome = await process_session(store, saved(*TALK), extractor=oracle)
    await assert_clean(store)
    read = "\n".join(turn.text for window in oracle.windows for turn in (*window.turns, *window.context))
    handed_back = "\n".join(one.candidate.model_dump_json() + one.detail for one in oracle.rejections)
    assert not any(secret in read + handed_back for secret in SECRETS)
    assert "I live in Graz. My wifi password is [redacted: password], and the alarm code is [redacted: code]." in read
    assert outcome.transcript.skipped[SECRETS_MASKED] >= 7
    with store.reading() as transaction:
        held = {fact.attribute: fact.value for fact in lookup.read_facts(transaction, LENA, at=AT)}
        kept = sessions.find_session(transaction, LENA, "a")
    assert (
        held == {"home": "Graz", "wifi": "[redacted: password]", "api_key": "[redacted: token]"}
        or held["home"] == "Graz"
    )
    assert kept is not None
    assert kept.skipped == outcome.transcript.skipped


async def test_a_dry_run_keeps_no_secret_either(store: Store) -> None:
    await process_session(store, saved(*TALK), extractor=OracleExtractor(leak), apply=False)
    await assert_clean(store)


async def test_entries_and_edits_are_masked(store: Store) -> None:
    wifi_entry = Entry(f"We stay in room 4, and the wifi password is {PASSWORD}.", attribute="wifi", value="room 4")
    await add_entry(store, LENA, wifi_entry, at=AT)
    await add_entry(store, LENA, Entry("The door.", attribute="door_code", value=DOOR), at=AT)
    with store.reading() as transaction:
        (wifi,) = [fact for fact in lookup.read_facts(transaction, LENA, at=AT) if fact.attribute == "wifi"]
    words = f"We stay in room 5, and the password is {KEY}."
    meant = FactEdit(words, f"room 5, {KEY}", wifi.subject)
    await reviews.edit_fact(store, LENA, wifi.id, meant, is_change=False, at=AT)
    await assert_clean(store)
    with store.reading() as transaction:
        values = {fact.value for fact in lookup.read_facts(transaction, LENA, at=AT + timedelta(days=1))}
    assert {"[redacted: code]", "room 5, [redacted: api key]"} <= values
    for never_kept in (Entry(f"The wifi password is {PASSWORD}."), Entry("Off the record: I am ill.")):
        with pytest.raises(ArgumentInvalid):
            await add_entry(store, LENA, never_kept, at=AT)
    await assert_clean(store)


class Failing(OracleExtractor):
    """Fails with a reason that somebody has written a key into."""

    async def extract(self, window: Window) -> Extraction:
        raise EndpointMisconfigured(f"https://me:{PASSWORD}@models.example refuses the key {KEY}")


async def test_a_reason_of_failure_is_masked(store: Store) -> None:
    (ended,) = await run_batch(store, [saved(*TALK)], extractor=Failing({}))
    assert isinstance(ended, Failure)
    await assert_clean(store)


class Blabbing:
    """A judge whose reasons hold a secret."""

    pairs_a_call: int | None = 40
    version = "blabbing-1"

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        reason = f"the password is {PASSWORD}"
        return [Verdict(one.id, two.id, Relation.BESIDE, reason, self.version) for one, two in pairs], Usage(calls=1)


async def test_a_judges_reason_is_masked(store: Store) -> None:
    for session_id in ("a", "b"):
        one = saved(user(f"I live in Graz {session_id.upper()}."), session_id=session_id)
        await process_session(store, one, extractor=RulesExtractor(), judge=Blabbing())
    held = await everything(store)
    assert "[redacted: password]" in held
    await assert_clean(store)


LONG = [text for number in range(5) for text in (user(f"Hello {number}."), agent("Noted."))]


async def test_read_at_turn_10_and_at_20_is_once_at_20_with_secrets(store: Store, canonical: Canonical) -> None:
    first = [*TALK, *LONG[: 10 - len(TALK)]]
    whole = [*first, user(f"I live in Linz. Again: {PASSWORD}"), *LONG, user("My PIN is 9281."), agent("9281, noted")]
    await process_session(store, saved(*first), extractor=RulesExtractor())
    grown = await process_session(store, saved(*whole), extractor=RulesExtractor())
    other = Scope.user("other")
    at_once = await process_session(store, replace(saved(*whole), scope=other), extractor=RulesExtractor())
    assert grown.transcript.turns == at_once.transcript.turns
    assert grown.transcript.skipped == at_once.transcript.skipped
    one, two = await canonical(store, LENA), await canonical(store, other)
    assert [fact[1:10] for fact in sorted(one, key=str)] != []
    assert {fact[1:10] for fact in one} == {fact[1:10] for fact in two}
    assert (await process_session(store, saved(*whole), extractor=RulesExtractor())).run_id is None
    await assert_clean(store, *SECRETS, "9281")


async def test_what_was_kept_before_masking_is_masked_when_it_is_read_again(store: Store) -> None:
    store.privacy = Privacy(kinds=frozenset())
    await process_session(store, saved(*TALK), extractor=OracleExtractor({}))
    assert PASSWORD in await everything(store)
    store.privacy = Privacy()
    again = await process_session(store, saved(*TALK, user("Bye.")), extractor=OracleExtractor({}))
    assert [turn.number for turn in again.transcript.turns] == list(range(1, len(again.transcript.turns) + 1))
    assert sum(turn.text.startswith("I live in Graz") for turn in again.transcript.turns) == 1
    with store.reading() as transaction:
        kept = "\n".join(turn.text for turn in sessions.read_turns(transaction, LENA, "a"))
    assert not any(secret in kept for secret in SECRETS)


async def test_nothing_that_is_off_the_record_is_read_or_kept(store: Store, canonical: Canonical) -> None:
    talk = [
        user("I live in Graz."),
        agent("Nice."),
        user("Off the record: I work at Zettelwerk."),
        agent("At Zettelwerk, I see."),
        user("/off-record"),
        user("I live in Linz."),
    ]
    await process_session(store, saved(*talk[:5]), extractor=RulesExtractor())
    rest = [agent("In Linz?"), user("Back on the record. My name is Lena.")]
    oracle = OracleExtractor({})
    outcome = await process_session(store, saved(*talk, *rest), extractor=RulesExtractor())
    await process_session(store, saved(*talk, *rest, session_id="b"), extractor=oracle)
    shown = [turn.text for turn in outcome.transcript.turns]
    assert shown[2:7] == [HIDDEN, HIDDEN, HIDDEN_FROM_HERE, HIDDEN, HIDDEN]
    assert shown[7].startswith("Back on the record")
    assert outcome.transcript.skipped[OFF_THE_RECORD] == 5
    assert [turn.text for turn in oracle.windows[0].turns] == shown
    await assert_clean(store, "Zettelwerk", "Linz")
    assert {fact[4] for fact in await canonical(store, LENA)} >= {"Graz"}


@pytest.mark.parametrize("apply", [True, False])
async def test_a_session_off_the_record_leaves_no_trace(store: Store, apply: bool) -> None:
    one = saved(user("I live in Graz."), off_the_record=True)
    (outcome,) = await run_batch(store, [one], extractor=RulesExtractor(), apply=apply)
    assert isinstance(outcome, SessionOutcome)
    assert (outcome.run_id, outcome.transcript.turns, dict(outcome.transcript.skipped)) == (
        None,
        (),
        {OFF_THE_RECORD: 1},
    )
    with store.reading() as transaction:
        assert sessions.read_sessions(transaction) == []
    await assert_clean(store, "Graz")
