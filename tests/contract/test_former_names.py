"""The former name of a subject is stored with the statement, and masked, forgotten and exported like the rest of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import select

from afterword.facts.assertions import Assertion
from afterword.facts.scopes import Scope
from afterword.store import entries, lookup
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry
from afterword.store.forgetting import erasable_tables
from afterword.store.tables import AssertionRow
from afterword.store.transfer import exports, imports

LENA = Scope.user("lena")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RENAMED = Entry("Billing-core is the new name of ledgerd.", subject="billing-core", former_name="ledgerd")


async def statements(store: Store) -> tuple[Assertion, ...]:
    return tuple(await store.read(lambda transaction: lookup.read_knowledge(transaction, LENA).assertions))


async def test_a_former_name_is_stored_and_read_back(store: Store) -> None:
    await entries.add_entry(store, LENA, RENAMED, at=NOON)
    assert [said.former_name for said in await statements(store)] == ["ledgerd"]


async def test_a_former_name_goes_with_an_export(store: Store, tmp_path: Path) -> None:
    await entries.add_entry(store, LENA, RENAMED, at=NOON)
    path = tmp_path / "lena.jsonl"
    await exports.export_scopes(store, path, [LENA])
    async with Store(f"sqlite:///{tmp_path}/elsewhere.db") as elsewhere:
        await elsewhere.migrate()
        await imports.import_file(elsewhere, path)
        assert await statements(elsewhere) == await statements(store)


async def test_a_secret_in_a_former_name_is_masked(store: Store) -> None:
    secret = "AKIA" + "QX7TNBV2LMWE4RZJ"
    await entries.add_entry(store, LENA, replace(RENAMED, former_name=f"ledgerd {secret}"), at=NOON)
    [said] = await statements(store)
    assert said.former_name is not None
    assert secret not in said.former_name


async def test_a_former_name_is_erased_with_its_statement(store: Store) -> None:
    await entries.add_entry(store, LENA, RENAMED, at=NOON)
    with store.reading() as transaction:
        [row] = transaction.exec(select(AssertionRow)).all()
    assert row.former_name == "ledgerd"
    [table] = [table for table in erasable_tables.ERASABLE_TABLES if table.table is AssertionRow]
    assert "former_name" in table.words
