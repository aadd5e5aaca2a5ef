"""An upgrade that changes how facts are derived: every scope is derived again, and what changed is listed."""

from __future__ import annotations

from sqlmodel import col, select, update

from afterword.facts.assertions import Extent, Relation, Verdict
from afterword.facts.fact import FactChange, Status
from afterword.store import ledger, lookup, scope_rows
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.scope_rows import DERIVATION
from afterword.store.tables import FactRow, ScopeRow
from afterword.store.upgrades import derive_facts_of_outdated_scopes
from kept import LENA, SAID_AT, facts_of, keep, stated


def age(store: Store, fact_id: str) -> None:
    """Leave the store as an older program would have left it: a fact has no period in which it holds."""
    with store.writing() as transaction:
        transaction.connection().execute(update(FactRow).where(col(FactRow.id) == fact_id).values(spans=[]))
        transaction.connection().execute(update(ScopeRow).values(derivation=0))


async def test_facts_that_older_rules_derived_are_derived_again_and_listed(store: Store) -> None:
    tea, train = stated("The user drinks tea.", 1), stated("The user takes the train.", 2)
    await keep(store, tea, train)
    before = await facts_of(store)
    age(store, tea.id)

    changes = await derive_facts_of_outdated_scopes(store)
    ((scope, (change,)),) = changes.items()
    assert isinstance(change, FactChange)
    assert change.before is not None
    assert change.after is not None
    assert (scope, change.before.status, change.after.status) == (LENA, Status.SUPERSEDED, Status.CURRENT)
    assert await facts_of(store) == before
    assert await derive_facts_of_outdated_scopes(store) == {}
    with store.reading() as transaction:
        assert transaction.exec(select(ScopeRow.derivation)).all() == [DERIVATION]


async def test_how_much_a_change_takes_is_stored_with_the_verdict(store: Store) -> None:
    tea, train = stated("The user drinks tea.", 1), stated("The user takes the train.", 2)
    verdict = Verdict(tea.id, train.id, Relation.CHANGES, "another plan", "test", extent=Extent.WHOLE)
    with store.writing() as transaction:
        revision = scope_rows.revision_of(transaction, LENA)
        reading = WindowReading("w1", 1, 9, (tea, train))
        proposal = Proposal(
            LENA, "session:s1", "session", "test", "test", SAID_AT, revision, (reading,), verdicts=(verdict,)
        )
        ledger.propose_and_apply(transaction, proposal)
    with store.reading() as transaction:
        assert lookup.read_knowledge(transaction, LENA, afresh=True).verdicts == (verdict,)
