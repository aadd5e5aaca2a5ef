"""Random changes of one memory, as users of the library make them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from afterword import Afterword, Scope
from afterword.store.entered_statements import Entry
from afterword.store.entries import add_entry
from service import said

MIRA = "default/user/mira"
DAY = datetime(2026, 3, 1, 9, tzinfo=UTC)
INSTANTS = [DAY + timedelta(days=days) for days in (400, 0, 3, 7, 400)]
SAYINGS = [
    *(f"I live in {place}." for place in ("Graz", "Linz", "Oslo")),
    *(f"I like {drink}." for drink in ("tea", "coffee", "mate")),
    *(f"My sister {name} moved to {place}." for name, place in (("Mara", "Lyon"), ("Ida", "Bergen"))),
    "I am on a diet until 2026-03-05.",
    "I don't like tea any more.",
    "Forget that I live in Graz.",
    "The weather is fine today.",
]


async def change_something(app: Afterword, chance: random.Random) -> None:
    """Change something at random, as a user of the library may."""
    user, number = app.scope(MIRA), chance.randrange(4)
    runs = {record.run.id: record.run.status for record in (await user.runs()).runs}
    applied = [run_id for run_id, status in runs.items() if status == "applied"]
    undone = [run_id for run_id, status in runs.items() if status == "undone"]
    facts, sessions = (await user.facts()).facts, (await user.sessions()).sessions
    kind = chance.choice([*["process"] * 4, "remember", "undo", "redo", "forget", "forget session", "merge"])
    if kind == "process":
        await process(app, MIRA, f"s{number}", chance)
    elif kind == "remember":
        end = DAY + timedelta(days=chance.randrange(3, 9))
        await user.remember(chance.choice(SAYINGS), valid_to=chance.choice([None, end]))
    elif kind == "undo" and applied:
        await user.undo(chance.choice(applied))
    elif kind == "redo" and undone:
        await user.redo(chance.choice(undone))
    elif kind == "forget" and facts:
        await user.forget(fact=chance.choice(facts).id)
    elif kind == "forget session" and sessions:
        await user.forget(session=chance.choice(sessions).session_id)
    elif kind == "merge" and runs:
        other = f"default/user/other-{chance.randrange(1000)}"
        await process(app, other, f"other-{chance.randrange(1000)}", chance)
        await app.merge(other, into=MIRA)


async def process(app: Afterword, scope: str, session_id: str, chance: random.Random) -> None:
    """Process a session of three turns, some of them by somebody else."""
    messages = [
        {"content": saying, "source": chance.choice(["user", "user", "tom"]), "type": "UserMessage"}
        for saying in chance.sample(SAYINGS, 3)
    ]
    state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
    started_at = DAY + timedelta(days=chance.randrange(5))
    await app.scope(scope).process(state, session_id=session_id, started_at=started_at)


async def add_what_is_rare(app: Afterword, *, with_renaming: bool = True) -> None:
    """Add facts that contradict each other, that may be about several people, with tags, and a renaming."""
    mira = app.scope(MIRA)
    await mira.process(said("I live in Porto."), session_id="home", started_at=DAY)
    (home,) = (await mira.facts()).facts
    await mira.remember("The user lives in Bergen.", attribute=home.attribute, value="Bergen", kind=home.kind)
    await mira.consolidate()
    for name in ("Ana Ruiz", "Ana Kiss", "Ana"):
        await mira.remember(f"{name} plays chess.", subject=name, attribute="hobby", value="chess")
    await mira.remember("The fare is 49 euros.", subject="note", tags=["travel", "cheap"])
    await mira.remember("The ferry leaves at noon.", subject="note", tags=["travel"], valid_from=DAY + timedelta(3))
    await mira.remember("Alpha has a web page.", subject="Alpha", attribute="page", value="yes")
    if not with_renaming:
        return
    renaming = Entry("Beta is the new name of Alpha.", subject="Beta", former_name="Alpha")
    await add_entry(await app.store(), Scope.parse(MIRA), renaming, at=DAY + timedelta(days=2))
