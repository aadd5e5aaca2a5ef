"""The newer fields of an extraction's answer, from the reply of an honest or a lying model to the store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from afterword import ModelClient, ModelExtractor, ModelSettings, Saved, Scope, SessionOutcome, process_session
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.testing import Reply, ScriptedEndpoint, facts_reply
from afterword.facts.assertions import Assertion, Kind
from afterword.store import lookup
from afterword.store.database.engine import Store

MIRA = Scope.user("mira")
MONDAY = datetime(2026, 3, 2, 10, tzinfo=UTC)
PROMPT = "extract-3"


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


async def process(store: Store, reply: Reply, *messages: str, prompt: str = PROMPT, **more: Any) -> SessionOutcome:
    saved = Saved(MIRA, "monday", state=state(*messages), started_at=MONDAY)
    with ScriptedEndpoint(lambda request: reply) as endpoint:
        async with ModelClient(ModelSettings("scripted", base_url=endpoint.base_url, max_retries=0)) as client:
            return await process_session(store, saved, extractor=ModelExtractor(client, extract=prompt), **more)


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


async def test_the_former_prompt_needs_no_named_acceptance(store: Store) -> None:
    booked = fact("Casa Alta", "The user books Casa Alta.", *BOOKED, flagged=True, former_name="Casa Alta")
    outcome = await process(store, facts_reply(booked), *TALK, prompt="extract-2")
    [said] = await assertions(store)
    assert (outcome.rejected, said.is_flagged, said.former_name) == ({}, False, None)


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
