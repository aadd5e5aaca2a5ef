"""Reading one thing by its id asks the database as much in a store of many scopes as in one of a few."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime

import pytest
from sqlmodel import Session

import afterword
from afterword.client.app import Afterword
from afterword.errors import NotFound
from afterword.facts.scopes import Scope
from afterword.store import entries, runs, scope_rows
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry
from asked_statements import asked_statements

NOW = datetime(2026, 4, 1, tzinfo=UTC)
MOST_STATEMENTS = 30


async def filled(store: Store) -> None:
    await store.migrate()

    def add_scopes(transaction: Session) -> None:
        for number in range(200):
            scope_rows.ensure_scope(transaction, Scope.user(f"user{number:03}"))

    await store.write(add_scopes)
    await entries.add_entry(store, Scope.user("user150"), Entry("Prefers window seats."), at=NOW)


async def few(asking: Awaitable[object]) -> None:
    with asked_statements() as asked:
        await asking
    assert len(asked) < MOST_STATEMENTS, asked


async def test_a_run_and_a_fact_are_found_by_their_ids_alone() -> None:
    async with Store("sqlite://") as store:
        await filled(store)
        app: Afterword
        async with afterword.open(store=store) as app:
            (fact,) = (await app.user("user150").facts()).facts
            await few(app.history(fact.id))
            await few(app.history(fact.id[:8]))
            (record,) = (await app.user("user150").runs()).runs
            await few(app.run(record.run.id))
            with pytest.raises(NotFound):
                await app.history("0123456789")


async def test_runs_of_a_status_are_counted_in_one_statement() -> None:
    async with Store("sqlite://") as store:
        await filled(store)
        with asked_statements() as asked:
            counts = await store.read(lambda transaction: runs.count_runs_by_scope(transaction, "applied"))
        assert counts == {Scope.user("user150"): 1}
        assert sum(statement.startswith("SELECT") for statement in asked) == 1
