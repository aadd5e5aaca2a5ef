"""What is forgotten in a merged scope stays forgotten after the merge is undone, in the scope where it was said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session, select

import afterword
from afterword.errors import StateConflict
from afterword.extractors.rules import RulesJudge
from afterword.extractors.testing import OracleExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.reversible_runs import merge_scopes, redo_run, undo_run
from afterword.pipeline.session import process_session
from afterword.store import lookup
from afterword.store.database.engine import Store
from afterword.store.forgetting.erasure import Erasure, ErasureWork, erase_in_scope
from afterword.store.merging.moves import WHOLE_SCOPE
from afterword.store.scope_rows import ensure_scope
from afterword.store.tables import MovedSourceRow
from deciding_words import find

LENA, TOM, ANNA = Scope.user("lena"), Scope.user("tom"), Scope.user("anna")
NOW = datetime(2026, 4, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


async def process(store: Store, scope: Scope, session_id: str, on: int, *said: str, version: str = "1") -> None:
    messages = [{"content": words, "source": "user", "type": "UserMessage"} for words in said]
    state: dict[str, Any] = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
    saved = Saved(scope, session_id, state=state, started_at=day(on), ended_at=day(on))
    await process_session(store, saved, extractor=OracleExtractor(find, version=version))


async def values(store: Store, scope: Scope) -> set[str]:
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, scope, at=NOW))
    return {fact.value for fact in facts if fact.is_served}


async def forget(store: Store, scope: Scope, work: ErasureWork, at: datetime = NOW) -> None:
    await erase_in_scope(store, scope, work, at=at)


def forget_session_a(erasure: Erasure) -> None:
    erasure.forget_session("a")


async def forget_value(store: Store, scope: Scope, value: str, at: datetime = NOW) -> None:
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, scope, at=NOW))
    (fact,) = [fact for fact in facts if fact.value == value]
    await forget(store, scope, lambda erasure: erasure.forget_statements(fact.assertion_ids), at)


async def moved_names(store: Store) -> set[str]:
    rows = await store.read(lambda transaction: list(transaction.exec(select(MovedSourceRow))))
    return {name for row in rows for name in (row.source, row.former_source)}


@pytest.fixture
async def merge_id(store: Store) -> int:
    """The run that merged Tom's memory into Lena's. Both have a session with the same id."""
    await process(store, TOM, "a", 1, "home: Gnarlsburg")
    await process(store, LENA, "a", 5, "drink: oolong")
    effect = await merge_scopes(store, TOM, LENA, judge=RulesJudge(), clock=lambda: day(10))
    assert await values(store, LENA) == {"Gnarlsburg", "oolong"}
    return effect.run.id


WAYS: dict[str, Callable[[Store], Awaitable[None]]] = {
    "session": lambda store: forget(store, LENA, lambda erasure: erasure.forget_session("a (tom)")),
    "before": lambda store: forget(store, LENA, lambda erasure: erasure.forget_before(day(2))),
    "fact": lambda store: forget_value(store, LENA, "Gnarlsburg"),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_merge_that_is_undone_brings_nothing_back(store: Store, merge_id: int, way: str) -> None:
    await WAYS[way](store)
    await undo_run(store, merge_id, judge=RulesJudge(), clock=lambda: NOW)
    await process(store, TOM, "a", 1, "home: Gnarlsburg", version="2")
    assert await values(store, TOM) == set()
    assert await values(store, LENA) == {"oolong"}
    await process(store, TOM, "b", 1, "seat: window")
    assert await values(store, TOM) == ({"window"} if way != "before" else set())


async def test_two_merges_that_are_undone_bring_nothing_back(store: Store, merge_id: int) -> None:
    await store.write(lambda transaction: ensure_scope(transaction, ANNA))
    second = await merge_scopes(store, LENA, ANNA, judge=RulesJudge(), clock=lambda: day(11))
    await forget_value(store, ANNA, "Gnarlsburg")
    await forget(store, ANNA, forget_session_a)
    for run_id in (second.run.id, merge_id):
        await undo_run(store, run_id, judge=RulesJudge(), clock=lambda: NOW)
    await process(store, TOM, "a", 1, "home: Gnarlsburg", version="2")
    await process(store, LENA, "a", 5, "drink: oolong", version="2")
    assert [await values(store, scope) for scope in (TOM, LENA, ANNA)] == [set(), set(), set()]


async def test_a_merged_scope_that_is_forgotten_as_a_whole_comes_back_nowhere(store: Store, merge_id: int) -> None:
    await forget(store, LENA, Erasure.forget_everything)
    for session_id in ("a", "never stored"):
        await process(store, TOM, session_id, 1, "home: Gnarlsburg")
    assert await values(store, TOM) == set()
    await process(store, TOM, "after the merge", 12, "seat: window")
    assert await values(store, TOM) == {"window"}


async def test_what_each_forgets_after_the_undoing_is_their_own(store: Store, merge_id: int) -> None:
    await undo_run(store, merge_id, judge=RulesJudge(), clock=lambda: NOW)
    await process(store, LENA, "b", 6, "home: Gnarlsburg")
    await forget_value(store, LENA, "Gnarlsburg")
    await forget(store, LENA, lambda erasure: erasure.forget_before(day(28)))
    await process(store, TOM, "a", 1, "home: Gnarlsburg", "seat: window", version="2")
    assert await values(store, TOM) == {"Gnarlsburg", "window"}


@pytest.mark.parametrize("everything", [False, True])
async def test_a_forgotten_session_is_not_named_by_an_undone_merge(
    store: Store, merge_id: int, everything: bool
) -> None:
    await undo_run(store, merge_id, judge=RulesJudge(), clock=lambda: NOW)
    await forget(store, LENA, forget_session_a)
    assert await moved_names(store) == {"", "session:a", "session:a (tom)"}
    await forget(store, TOM, Erasure.forget_everything if everything else forget_session_a)
    assert await moved_names(store) == {""}
    await redo_run(store, merge_id, judge=RulesJudge(), clock=lambda: NOW)
    await process(store, LENA, "a (tom)", 1, "home: Gnarlsburg")
    assert await values(store, LENA) == set()


async def without_the_whole_scope(store: Store) -> None:
    """Record the merge as versions did that recorded its sources alone."""

    def work(transaction: Session) -> None:
        for row in transaction.exec(select(MovedSourceRow).where(MovedSourceRow.source == WHOLE_SCOPE)).all():
            transaction.delete(row)

    await store.write(work)


async def test_a_merge_of_an_older_version_is_undone_and_redone_after_all_was_forgotten(
    store: Store, merge_id: int
) -> None:
    await without_the_whole_scope(store)
    await forget(store, LENA, lambda erasure: erasure.forget_session("a (tom)"))
    for switch, status in ((undo_run, "undone"), (redo_run, "applied"), (undo_run, "undone")):
        effect = await switch(store, merge_id, judge=RulesJudge(), clock=lambda: NOW)
        assert effect.run.status == status
        assert (await values(store, LENA), await values(store, TOM)) == ({"oolong"}, set())


@pytest.mark.parametrize("work", [forget_session_a, lambda erasure: erasure.forget_before(NOW)])
async def test_a_session_that_was_moved_away_is_not_forgotten_with_a_later_one(
    store: Store, merge_id: int, tmp_path: Path, work: ErasureWork
) -> None:
    """Here and where the memory is imported: Lena's memory still has what was Tom's before the merge."""
    await process(store, TOM, "a", 1, "home: Gnarlsburg", version="2")
    await forget(store, TOM, work)
    assert (await values(store, TOM), await values(store, LENA)) == (set(), {"Gnarlsburg", "oolong"})
    async with afterword.open(store=store) as here, afterword.open(f"sqlite:///{tmp_path}/there.db") as there:
        await here.export(tmp_path / "all.jsonl")
        await there.import_(tmp_path / "all.jsonl")
        elsewhere = await there.store()
        assert (await values(elsewhere, TOM), await values(elsewhere, LENA)) == (set(), {"Gnarlsburg", "oolong"})


async def test_a_merge_that_was_imported_cannot_be_undone_here(store: Store, tmp_path: Path) -> None:
    await process(store, TOM, "a", 1, "home: Gnarlsburg")
    await process(store, LENA, "a", 5, "drink: oolong")
    await merge_scopes(store, TOM, LENA, judge=RulesJudge(), clock=lambda: day(10))
    async with afterword.open(store=store) as here:
        await here.export(tmp_path / "all.jsonl")
    async with afterword.open(f"sqlite:///{tmp_path}/there.db") as there:
        await there.import_(tmp_path / "all.jsonl")
        (merged,) = [record.run for record in (await there.user("lena").runs()).runs if record.run.purpose == "merge"]
        with pytest.raises(StateConflict, match="another store"):
            await there.user("lena").undo(merged.id)


async def test_after_a_merge_there_and_back_two_sessions_of_one_name_stay_apart(store: Store) -> None:
    await process(store, LENA, "a", 1, "home: Gnarlsburg")
    await process(store, TOM, "a", 5, "drink: oolong")
    await merge_scopes(store, LENA, TOM, judge=RulesJudge(), clock=lambda: day(10))
    await merge_scopes(store, TOM, LENA, judge=RulesJudge(), clock=lambda: day(11))
    async with afterword.open(store=store) as app:
        sessions = {entry.session_id for entry in (await app.user("lena").sessions()).sessions}
    assert sessions == {"a", "a (lena)"}
    await forget_value(store, LENA, "Gnarlsburg", at=day(12))
    await process(store, LENA, "a", 13, "drink: oolong", "home: Gnarlsburg")
    assert await values(store, LENA) == {"oolong", "Gnarlsburg"}
