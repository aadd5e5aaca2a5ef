"""The same words under the former name of a memory that was renamed or merged: each memory keeps its own statements."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlmodel import Session, select

import afterword
from afterword import Afterword, Scope
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from afterword.store.database.engine import Store
from afterword.store.migrations import VERSION_TABLE
from afterword.store.scope_rows import scope_key
from afterword.store.tables import AssertionRow
from afterword.store.upgrades import derive_facts_of_outdated_scopes
from service import said

SETTINGS = Settings(embedding=EmbeddingOptions(kind="none"))
SESSIONS = [
    ("s1", "2026-03-13T09:00:00Z", "I prefer window seats."),
    ("s2", "2026-06-12T09:00:00Z", "I prefer aisle seats now."),
]
PRIYA, PAT = "default/user/priya", "default/user/pat"
ALL = {("window seats", "superseded"), ("aisle seats", "current")}


@pytest.fixture
async def app(shared_url: str) -> AsyncIterator[Afterword]:
    async with afterword.open(shared_url, settings=SETTINGS) as opened:
        yield opened


async def say(app: Afterword, scope: str, *further: str) -> None:
    for session_id, started_at, text in SESSIONS:
        report = await app.scope(scope).process(said(text, *further), session_id=session_id, started_at=started_at)
        assert [each.result_name for each in report.sessions if each.result_name == "failed"] == []


async def seats(app: Afterword, scope: str) -> set[tuple[str, str]]:
    facts = (await app.scope(scope).facts(status="all")).facts
    return {(fact.value, str(fact.status)) for fact in facts if fact.attribute == "seat"}


async def move(app: Afterword, way: str, scope: str = PRIYA, into: str = PAT) -> int:
    effect = await (app.rename(scope, into) if way == "rename" else app.merge(scope, into=into))
    return effect.run.id


@pytest.mark.parametrize("way", ["rename", "merge"])
async def test_sessions_that_come_again_under_the_former_name_are_stored_there(
    app: Afterword, way: str, tmp_path: Path
) -> None:
    await say(app, PRIYA)
    if way == "merge":
        await app.scope(PAT).process(said("I live in Oslo."), session_id="s1", started_at=SESSIONS[0][1])
    await move(app, way)
    await say(app, PRIYA)
    assert await seats(app, PRIYA) == await seats(app, PAT) == ALL
    for scope in (PRIYA, PAT):
        memory = app.scope(scope)
        assert "aisle seats" in (await memory.context("seat")).text
        for fact in (await memory.facts(status="all")).facts:
            assert (await memory.fact(fact.id)).id == fact.id
        await memory.export(tmp_path / f"{memory.scope.id}.json", readable=True)


async def test_a_session_that_goes_on_under_the_former_name(app: Afterword) -> None:
    await say(app, PRIYA)
    await move(app, "rename")
    await say(app, PRIYA)
    await say(app, PRIYA, "I live in Oslo.")
    assert await seats(app, PRIYA) == await seats(app, PAT) == ALL
    ids = {fact.id for fact in (await app.scope(PAT).facts(status="all")).facts}
    assert not ids & {fact.id for fact in (await app.scope(PRIYA).facts(status="all")).facts}


async def test_moves_that_follow_each_other_and_are_undone(app: Afterword) -> None:
    runs = []
    for way in ("rename", "merge", "merge"):
        await say(app, PRIYA)
        runs.append(await move(app, way))
    assert await seats(app, PRIYA) == set()
    await say(app, PRIYA)
    for run_id in reversed(runs):
        await app.scope(PAT).undo(run_id)
        await say(app, PRIYA)
    assert {value for value, status in await seats(app, PRIYA) if status == "current"} == {"aisle seats"}
    assert await seats(app, PAT) == set()


@pytest.mark.parametrize("way", ["rename", "merge"])
async def test_a_session_that_goes_on_after_a_move_is_known_whole(app: Afterword, way: str) -> None:
    sentences = [f"My favourite {thing} is {thing} seven." for thing in ("tea", "hotel", "train", "song")]

    async def goes_on(scope: str, number: int) -> None:
        await app.scope(scope).process(said(*sentences[:number]), session_id="s1", started_at=SESSIONS[0][1])
        facts = (await app.scope(scope).session("s1")).facts
        assert {fact.evidence[0].quote for fact in facts} == set(sentences[:number])

    if way == "merge":
        await app.scope(PAT).remember("Pat owns a boat.")
    for number in range(5):
        await app.scope(PRIYA).remember(f"Priya owns {number} boats.")
    await goes_on(PRIYA, 1)
    run_id = await move(app, way)
    await goes_on(PAT, 2)
    await goes_on(PAT, 3)
    await app.scope(PAT).undo(run_id)
    await goes_on(PRIYA, 4)


async def test_an_export_comes_in_again_under_the_former_name(app: Afterword, tmp_path: Path) -> None:
    await say(app, PRIYA)
    await app.export(tmp_path / "before.jsonl")
    await move(app, "rename")
    for _ in range(2):
        await app.import_(tmp_path / "before.jsonl")
        assert await seats(app, PRIYA) == await seats(app, PAT) == ALL
    await say(app, PRIYA, "I live in Oslo.")
    assert await seats(app, PRIYA) == await seats(app, PAT) == ALL


async def test_a_memory_that_took_the_statements_of_another_heals_with_the_upgrade(shared_url: str) -> None:
    """Older versions tied what was said again to the statements that had moved, and then read neither memory."""
    async with afterword.open(shared_url, settings=SETTINGS) as app:
        await say(app, PRIYA)
        await move(app, "rename")
        await say(app, PRIYA)
    async with Store(shared_url) as store:
        with store.writing() as transaction:
            tie_to_statements_that_moved(transaction)
        await store.migrate()
        await derive_facts_of_outdated_scopes(store)
    async with afterword.open(shared_url, settings=SETTINGS) as app:
        assert await seats(app, PRIYA) == await seats(app, PAT) == ALL
        for scope in (PRIYA, PAT):
            for fact in (await app.scope(scope).facts(status="all")).facts:
                assert {piece.session_id for piece in fact.evidence} <= {"s1", "s2"}
        await say(app, PRIYA, "I live in Oslo.")
        assert await seats(app, PRIYA) == await seats(app, PAT) == ALL


def tie_to_statements_that_moved(transaction: Session) -> None:
    """Make of a store what older versions made: the statements of both scopes are those of the second one."""
    priya, pat = (scope_key(transaction, Scope.parse(name)) for name in (PRIYA, PAT))
    rows = transaction.exec(select(AssertionRow).where(AssertionRow.scope_id == priya)).all()
    moved = {
        row.session_id: row.id for row in transaction.exec(select(AssertionRow).where(AssertionRow.scope_id == pat))
    }
    run = transaction.connection().exec_driver_sql
    for row in rows:
        for statement in (
            f"UPDATE window_assertions SET assertion_id = '{moved[row.session_id]}' WHERE assertion_id = '{row.id}'",
            f"DELETE FROM fact_assertions WHERE assertion_id IN ('{row.id}', '{moved[row.session_id]}')",
            f"DELETE FROM facts WHERE id = '{row.id}'",
            f"UPDATE facts SET scope_id = {priya} WHERE id = '{moved[row.session_id]}'",
            f"INSERT INTO fact_assertions (fact_id, assertion_id, ordinal) "
            f"SELECT id, id, 0 FROM facts WHERE id = '{moved[row.session_id]}'",
        ):
            run(statement)
    run(f"UPDATE run_verdicts SET verdict_key = (SELECT key FROM verdicts WHERE scope_id = {pat}) "
        f"WHERE verdict_key IN (SELECT key FROM verdicts WHERE scope_id = {priya})")  # fmt: skip
    run(f"DELETE FROM verdicts WHERE scope_id = {priya}")
    run(f"DELETE FROM evidence WHERE assertion_id IN (SELECT id FROM assertions WHERE scope_id = {priya})")
    run(f"DELETE FROM assertions WHERE scope_id = {priya}")
    run("DROP TABLE seen_sessions")
    run(f"UPDATE {VERSION_TABLE} SET version_num = '0023'")


async def test_memories_of_another_library_come_again_under_the_former_name(app: Afterword, tmp_path: Path) -> None:
    memories = [
        {"id": "1", "memory": "Priya plays chess", "created_at": "2026-01-05T09:00:00+00:00"},
        {"id": "2", "memory": "Priya rows", "created_at": "2062-01-05T09:00:00+00:00"},
    ]
    (tmp_path / "mem0.json").write_text(json.dumps({"results": memories}))
    first = await app.scope(PRIYA).import_(tmp_path / "mem0.json", kind="mem0")
    assert first.guessed == 1, "a time in the future is none"
    await move(app, "rename")
    await app.scope(PRIYA).import_(tmp_path / "mem0.json", kind="mem0")
    for scope in (PRIYA, PAT):
        facts = (await app.scope(scope).facts()).facts
        assert {fact.statement for fact in facts} == {"Priya plays chess", "Priya rows"}
