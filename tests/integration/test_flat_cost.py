"""What a session asks of the database, however much its scope holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Window
from afterword.extractors.testing import OracleExtractor
from afterword.facts.assertions import Kind
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import lookup
from afterword.store.database.engine import Store
from asked_statements import asked_statements

LENA = Scope.user("lena")
MOST_STATEMENTS = 32
"""Of a session that meets nothing: in two transactions that read (itself, what is known) and one that writes."""


def things(window: Window) -> list[Candidate]:
    """Return a fact for each turn: "my <attribute> is <value>"."""
    found = []
    for turn in window.turns:
        _, attribute, _, value = turn.text.split()
        citation = Citation(turn=turn.number, quote=turn.text)
        statement = f"The user's {attribute} is {value}."
        found.append(
            Candidate(
                kind=Kind.ENTITY,
                subject="user",
                attribute=attribute,
                value=value,
                statement=statement,
                evidence=[citation],
            )
        )
    return found


async def say(store: Store, number: int, *texts: str) -> None:
    messages = [{"content": text, "source": "user", "type": "UserMessage"} for text in texts]
    state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    saved = Saved(LENA, f"s{number}", state=state, started_at=at, ended_at=at)
    await process_session(store, saved, extractor=OracleExtractor(things))


async def test_a_session_asks_the_same_of_a_scope_of_ten_facts_and_of_a_thousand(tmp_path: Path) -> None:
    asked: list[list[str]] = []
    async with Store(f"sqlite:///{tmp_path}/afterword.db") as store:
        await store.migrate()
        await say(store, 0, *(f"my thing{number} is small{number}" for number in range(10)))
        for number, thing in ((1, "my home is Graz"), (3, "my garden is wild")):
            with asked_statements() as found:
                await say(store, number, thing)
            asked.append(found)
            if number == 1:
                await say(store, 2, *(f"my other{place} is large{place}" for place in range(1000)))
    assert asked[0] == asked[1]
    assert len(asked[0]) <= MOST_STATEMENTS, asked[0]


async def test_another_process_is_seen_at_once(tmp_path: Path) -> None:
    """What is held in memory is held for one revision: two stores on one file never miss what the other has done."""
    url = f"sqlite:///{tmp_path}/afterword.db"
    async with Store(url) as one, Store(url) as other:
        await one.migrate()
        for number, store in enumerate((one, other, one, other)):
            await say(store, number, f"my home is street{number}")
        with one.reading() as db, other.reading() as beside:
            held, also_held = lookup.read_knowledge(db, LENA), lookup.read_knowledge(beside, LENA)
            read = lookup.read_knowledge(db, LENA, afresh=True)
    assert set(held.assertions) == set(also_held.assertions) == set(read.assertions)
    assert set(held.verdicts) == set(also_held.verdicts) == set(read.verdicts)
    assert len(read.assertions) == 4
    assert len(read.verdicts) >= 3
