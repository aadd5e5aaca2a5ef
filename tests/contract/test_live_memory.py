"""One suite over both frameworks: what a memory promises to an agent that uses it live."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

import afterword
from afterword import Afterword, ProcessingOptions
from afterword.agents.memory_settings import SharedStore
from afterword.client.arguments import EVERY_STATUS
from afterword.errors import StoreUnreachable
from afterword.facts.scopes import Scope
from afterword.store.database.engine import Store
from live_chats import FRAMEWORKS, FrameworkChat, LiveChat
from running_time import running_time

LENA, OTTO = Scope.user("lena"), Scope.user("otto")
RULES = ProcessingOptions(extractor="rules")
Canonical = Callable[[Store, Scope], Awaitable[list[tuple[object, ...]]]]


@pytest.fixture(params=sorted(FRAMEWORKS))
def chat(request: pytest.FixtureRequest) -> type[LiveChat]:
    """The kind of chat with an agent."""
    return FRAMEWORKS[str(request.param)]


async def processed(store: Store) -> Afterword:
    app = afterword.open(store=store)
    await app.run_pending(options=RULES)
    return app


async def statements(store: Store, user: str = "lena") -> set[str]:
    return {fact.statement for fact in (await afterword.open(store=store).user(user).facts()).facts}


async def know(store: Store, user: str, text: str) -> None:
    await afterword.open(store=store).user(user).remember(text)


async def test_each_request_has_one_block(chat: type[LiveChat], store: Store) -> None:
    await know(store, "lena", "Lena likes tea.")
    lena = chat("lena", "monday", store)
    await lena.say("Hello.", "What do I like?", "And now?")
    assert lena.blocks() == [1, 1, 1]
    assert all("Lena likes tea." in text for text in lena.requests)


async def test_nothing_is_learned_from_the_block_or_from_an_agent(
    chat: type[LiveChat], store: Store, canonical: Canonical
) -> None:
    await chat("lena", "monday", store).say("I live in Graz.")
    await processed(store)
    known = await canonical(store, LENA)
    assert len(known) == 1
    await chat("lena", "tuesday", store, "You live in Graz. You like wine.").say("Hello.", "What do you know?")
    await processed(store)
    assert await canonical(store, LENA) == known


async def test_two_people_at_the_same_time_are_kept_apart(chat: type[LiveChat], store: Store) -> None:
    await know(store, "lena", "Lena likes tea.")
    await know(store, "otto", "Otto likes wine.")
    lena, otto = chat("lena", "monday", store), chat("otto", "monday", store)
    await asyncio.gather(lena.say("I live in Graz.", "Hello."), otto.say("I live in Rome.", "Hello."))
    await processed(store)
    assert not any("Otto" in text or "wine" in text for text in lena.requests)
    assert not any("Lena" in text or "tea" in text for text in otto.requests)
    assert await statements(store) == {"Lena likes tea.", "The user lives in Graz."}
    assert await statements(store, "otto") == {"Otto likes wine.", "The user lives in Rome."}


async def test_a_turn_goes_on_while_the_store_is_away(chat: type[LiveChat], store: Store) -> None:
    is_away = True

    async def opened() -> Store:
        if is_away:
            raise StoreUnreachable("the store is away")
        return store

    lena = chat("lena", "monday", SharedStore("sqlite://", opened), "Noted.")
    with suppress(StoreUnreachable):  # a recorder says so; the answer was given before
        assert await lena.say("I live in Graz.") == ["Noted."]
    assert lena.blocks() == [0]
    is_away = False
    assert await lena.say("I like tea.") == ["Noted."]
    await processed(store)
    assert "The user likes tea." in await statements(store)
    if isinstance(lena, FrameworkChat):
        assert "The user lives in Graz." in await statements(store)


async def test_a_slow_store_holds_a_turn_up_no_longer_than_allowed(chat: type[LiveChat], store: Store) -> None:
    """The store is opened only after the model was asked."""
    was_asked = asyncio.Event()

    async def opened() -> Store:
        await was_asked.wait()
        return store

    lena = chat("lena", "monday", SharedStore("sqlite://", opened), timeout_s=0.2)
    with running_time() as elapsed_s:
        asking = asyncio.create_task(lena.say("Hello."))
        await asyncio.wait_for(lena.asked.wait(), 60)
        assert elapsed_s() < 1.2
    was_asked.set()
    await asking
    if isinstance(lena, FrameworkChat):
        await lena.provider.finish()
        await lena.provider.close()
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})  # what goes on in the background


async def test_what_was_said_before_a_cancellation_is_kept(chat: type[LiveChat], store: Store) -> None:
    lena = chat("lena", "monday", store)
    lena.delay_s = 30.0
    asking = asyncio.create_task(lena.say("I live in Graz."))
    await lena.asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await processed(store)
    assert await statements(store) == {"The user lives in Graz."}
    lena.delay_s = 0.0
    assert await lena.say("Hello.") == ["Noted."]


async def test_streamed_answers_are_remembered_like_others(
    chat: type[LiveChat], store: Store, canonical: Canonical
) -> None:
    lena = chat("lena", "monday", store, "Very well noted.")
    assert await lena.say("I live in Graz.", "I like tea.", stream=True) == ["Very well noted."] * 2
    app = await processed(store)
    assert await statements(store) == {"The user lives in Graz.", "The user likes tea."}
    details = await app.user("lena").session("monday")
    assert [entry.turn.text for entry in details.turns if entry.turn.role.value == "agent"] == ["Very well noted."] * 2
    assert "The user lives in Graz." not in lena.requests[0]


@pytest.mark.parametrize("chat", sorted(FRAMEWORKS), indirect=True)
def test_one_memory_serves_several_event_loops(chat: type[LiveChat], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/loops.db"
    lena = chat("lena", "monday", url)

    async def talk(text: str) -> None:
        assert await lena.say(text) == ["Noted."]
        await lena.close()

    for text in ("I live in Graz.", "I like tea.", "I have a dog."):
        asyncio.run(talk(text))

    async def learned() -> set[str]:
        async with afterword.open(url) as app:
            await app.run_pending(options=RULES)
            return {fact.statement for fact in (await app.user("lena").facts()).facts}

    assert {"The user lives in Graz.", "The user likes tea."} <= asyncio.run(learned())


async def test_ten_sessions_build_on_each_other(chat: type[LiveChat], store: Store) -> None:
    places = ("Graz", "Rome", "Oslo", "Bern", "Lyon", "Kiel", "Riga", "Bonn", "Cork", "Turku")
    for number, place in enumerate(places):
        lena = chat("lena", f"session {number}", store)
        await lena.say("Hello.", f"I live in {place}.")
        await processed(store)
        if number:
            assert f"The user lives in {places[number - 1]}." in lena.requests[0]
        assert await statements(store) == {f"The user lives in {place}."}
        assert lena.blocks() == [int(bool(number))] * 2


async def test_the_same_conversation_gives_the_same_facts(store: Store) -> None:
    said = ("I live in Graz.", "I like tea.", "I work at Voestalpine.", "I no longer like tea.")
    learned = []
    for name, kind in FRAMEWORKS.items():
        await kind(name.replace(" ", "-"), "monday", store).say(*said)
        app = await processed(store)
        facts = (await app.user(name.replace(" ", "-")).facts(status=EVERY_STATUS)).facts
        learned.append({(fact.statement, fact.status, fact.evidence[0].quote) for fact in facts})
    assert learned[0] == learned[1]
    assert len(learned[0]) >= 3


async def test_a_store_filled_by_one_framework_serves_the_other(store: Store) -> None:
    for first, second in (("autogen", "agent framework"), ("agent framework", "autogen")):
        user = first.replace(" ", "-")
        await FRAMEWORKS[first](user, "monday", store).say("I live in Graz.")
        await processed(store)
        later = FRAMEWORKS[second](user, "tuesday", store)
        await later.say("Where do I live?")
        assert "The user lives in Graz." in later.requests[0]
