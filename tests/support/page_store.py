"""A store with something for every page."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import afterword
from afterword.settings import Settings

Result = TypeVar("Result")

MIRA = "/pages/default/user/mira"
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DAYS = tuple(
    f"2026-{month:02}-{day:02}T{hour:02}:15:00Z" for month, day, hour in ((3, 2, 9), (3, 9, 17), (4, 20, 8), (5, 4, 12))
)


def conversation(*texts: str) -> dict[str, Any]:
    """Return the saved state of an assistant to which a person said the even texts, and which said the others."""
    messages = [
        {"content": text, "source": "user", "type": "UserMessage"}
        if place % 2 == 0
        else {"content": text, "source": "assistant", "thought": None, "type": "AssistantMessage"}
        for place, text in enumerate(texts)
    ]
    return {"type": "AssistantAgentState", "llm_context": {"messages": messages}}


TRIP = conversation(
    "I live in Porto. I prefer window seats.",
    "Noted: a window seat. Shall I look for trains on Friday?",
    "Yes. I am allergic to peanuts, so no snacks on board.",
    "I will leave the snacks out. Which card should I use?",
    "My password is Kx7!pqLm29zz, please do not write it down.",
    "I have not kept it.",
    "off the record: my boss is leaving in June.",
    "Understood.",
)
MOVE = conversation(
    "I moved to Oslo.", "Congratulations! I look for trains from Oslo.", "I like strong coffee.", "Good."
)
PLANS = conversation(
    "I work as a nurse. My sister is called Ana.", "Thanks.", "I prefer aisle seats on long flights.", "Noted."
)
ASKED = conversation("Please forget that I like strong coffee.", "Of course.")


@dataclass(frozen=True)
class Keys:
    """The keys of the people who look at the store."""

    mira: str
    admin: str
    reader: str


async def converse(app: afterword.Afterword, name: str) -> None:
    """Let a person have four sessions, correct what is kept, and leave something to decide."""
    person = app.user(name)
    for session_id, state, day in zip(
        ("trip", "move", "plans", "asked"), (TRIP, MOVE, PLANS, ASKED), DAYS, strict=True
    ):
        await person.process(state, session_id=session_id, started_at=day)
    (home,) = [fact for fact in (await person.facts()).facts if fact.value == "Oslo"]
    await person.remember("The user lives in Bergen.", attribute=home.attribute, value="Bergen", kind=home.kind)
    await person.remember("The fare to Oslo is 49 euros.", subject="note", tags=["travel"])
    await person.consolidate()
    agent = person.for_agent()
    await agent.remember("The user is learning Norwegian.", attribute="language", value="Norwegian")
    await agent.remember("The user rides a bicycle to work.", attribute="commute", value="bicycle")


async def fill(url: str) -> Keys:
    """Fill a store, and return its keys."""
    async with afterword.open(url, settings=Settings()) as app:
        await converse(app, "mira")
        await app.user("noor").remember("I live in Rome.")
        keys = [
            (await app.keys.create(user="mira", name="mira")).secret,
            (await app.keys.create(user="mira", admin=True, name="operator")).secret,
            (await app.keys.create(user="mira", read_only=True, name="reader")).secret,
        ]
    return Keys(*keys)


async def fill_for(url: str, name: str) -> str:
    """Let one more person have what mira has, and return the key of that person."""
    async with afterword.open(url, settings=Settings()) as app:
        await converse(app, name)
        return (await app.keys.create(user=name, name=name)).secret


def store_url(folder: Path) -> str:
    """Return the address of the store of a folder."""
    return f"sqlite:///{folder}/afterword.db"


def filled(folder: Path) -> Keys:
    """Fill the store of a folder."""
    return _apart(fill(store_url(folder)))


def filled_for(folder: Path, name: str) -> str:
    """Let one more person have what mira has in the store of a folder, and return the key of that person."""
    return _apart(fill_for(store_url(folder), name))


def _apart(work: Coroutine[Any, Any, Result]) -> Result:
    """Return what the work returns. It has a thread of its own, since Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
