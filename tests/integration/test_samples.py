"""Real saved states through the offline rules: what must never become a fact does not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from afterword.extractors.rules import RulesExtractor
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import lookup
from afterword.store.database.engine import Store
from traps import TRAPS

OWNER = Scope.user("owner")
SAVED_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


async def facts_of(path: Path) -> list[Fact]:
    async with Store("sqlite://") as store:
        await store.migrate()
        saved = Saved(OWNER, path.stem, path=path, started_at=SAVED_AT, ended_at=SAVED_AT)
        await process_session(store, saved, extractor=RulesExtractor())
        with store.reading() as db:
            return lookup.read_facts(db, OWNER, at=datetime(2027, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("name", sorted(TRAPS))
async def test_no_trap_becomes_a_fact(shared: Path, name: str) -> None:
    facts = await facts_of(shared / "data" / "states" / f"{name}.json")
    told = [f"{fact.statement} {fact.value}" for fact in facts]
    assert [(trap, text) for trap in TRAPS[name] for text in told if trap.casefold() in text.casefold()] == []


async def test_every_sample_goes_through_the_whole_pipeline(shared: Path) -> None:
    samples = [path for path in sorted((shared / "data" / "states").glob("*.json")) if path.name != "gold.json"]
    assert len(samples) >= 30
    found = {path.stem: await facts_of(path) for path in samples}
    assert sum(bool(facts) for facts in found.values()) >= 5
    for facts in found.values():
        assert all(item.speaker for fact in facts for item in fact.evidence)


async def test_an_agent_saved_without_words_is_empty_and_no_failure(shared: Path) -> None:
    for name in ("society_of_mind_agent_alone", "code_executor_agent_alone"):
        assert await facts_of(shared / "data" / "states" / f"{name}.json") == []
