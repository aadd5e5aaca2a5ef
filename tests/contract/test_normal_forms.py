"""Names and texts are stored in one normal form, also those of an older store. What was forgotten stays forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import col, select

from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.scopes import Scope, ScopeKind
from afterword.normal_form import composed, decomposed
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.privacy.tombstones import Tombstone, TombstoneKind
from afterword.store import lookup, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure as forgetting
from afterword.store.forgetting.erasure import Erasure
from afterword.store.forgetting.hash_keys import ensure_store_key
from afterword.store.forgetting.tombstone_rows import add_tombstones
from afterword.store.merging.text_forms import convert_stored_texts_to_nfc
from afterword.store.scope_rows import ApprovalPolicy
from afterword.store.tables import AssertionRow, EvidenceRow, ScopeRow, TurnRow
from afterword.store.transfer import exports, imports
from afterword.store.upgrades import derive_facts_of_outdated_scopes, merge_scope_forms

MIRA, JOSE = Scope.user("mira"), Scope.user("José")
JOSE_NFD = Scope.from_stored("default", ScopeKind.USER, decomposed("José"))
LATER = datetime(2026, 4, 1, tzinfo=UTC)
HOME = "I live in Malmö."


async def process(
    store: Store, session_id: str, day: int, *said: str, scope: Scope = MIRA, **more: Any
) -> SessionOutcome:
    at = datetime(2026, 3, day, 9, tzinfo=UTC).isoformat()
    messages = [{"type": "TextMessage", "source": "user", "content": words, "created_at": at} for words in said]
    saved = Saved(scope, session_id, **({"state": messages} | more))
    return await process_session(store, saved, extractor=RulesExtractor(), judge=RulesJudge())


async def values(store: Store, scope: Scope = MIRA) -> dict[str, str]:
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, scope, at=LATER))
    return {fact.value: str(fact.status) for fact in facts}


async def test_two_forms_of_a_word_are_one_value(store: Store) -> None:
    await process(store, "a", 1, HOME)
    await process(store, "b", 2, decomposed(HOME))
    assert await values(store) == {"Malmö": "current"}
    (fact,) = await store.read(lambda transaction: lookup.read_facts(transaction, MIRA, at=LATER))
    assert fact.support == 2
    for evidence in fact.evidence:
        turns = await store.read(partial(sessions.read_turns, scope=MIRA, session_id=evidence.session_id or ""))
        start = evidence.start or 0
        assert turns[0].text[start : start + len(evidence.quote)] == evidence.quote


@pytest.mark.parametrize("form", [composed, decomposed])
async def test_what_is_forgotten_is_forgotten_in_both_forms(store: Store, form: Any) -> None:
    await process(store, "a", 1, form(HOME))
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, MIRA, at=LATER))

    def work(erasure: Erasure) -> None:
        erasure.forget_statements(facts[0].assertion_ids)

    await forgetting.erase_in_scope(store, MIRA, work, at=LATER)
    other = composed if form is decomposed else decomposed
    for said in (form(HOME), other(HOME)):
        await process(store, "a", 1, said)
        await process(store, "b", 2, said)
        assert await values(store) == {}


@pytest.mark.parametrize("said", [HOME, decomposed(HOME)])
async def test_what_was_forgotten_before_the_upgrade_stays_forgotten(store: Store, said: str) -> None:
    """An older version hashed a text in NFD as it stood, without its accents."""

    def work(transaction: Any) -> None:
        key = ensure_store_key(transaction)
        scope = str(MIRA)
        slot = key.hash_of(TombstoneKind.SLOT, scope, "user", "home", decomposed("malmö"))
        text = key.hash_of(TombstoneKind.TEXT, scope, "a", "iliveinmalmo")
        place = key.session_hash(MIRA, "a")
        tombstones = [
            Tombstone(TombstoneKind.SLOT, key.id, "", slot, LATER),
            Tombstone(TombstoneKind.TEXT, key.id, place, text, LATER, ((7, 12),), 1),
        ]
        add_tombstones(transaction, MIRA, tombstones)

    await store.write(work)
    await process(store, "a", 1, said)
    (turn,) = await store.read(lambda transaction: sessions.read_turns(transaction, MIRA, "a"))
    assert turn.text == "I live in [forgotten]."
    await process(store, "b", 2, said)
    assert await values(store) == {}


async def make_old(store: Store, scope: Scope = MIRA) -> None:
    """Bring the texts of a scope into NFD, as an older version stored them."""

    def work(transaction: Any) -> None:
        for row in transaction.exec(select(AssertionRow)):
            for name in ("subject", "attribute", "value", "statement", "subject_key", "attribute_key"):
                setattr(row, name, decomposed(getattr(row, name)))
        for row in transaction.exec(select(TurnRow)):
            row.text = decomposed(row.text)
        for row in transaction.exec(select(EvidenceRow)):
            row.quote = decomposed(row.quote)
            row.start = None if row.start is None else row.start + 1
        transaction.flush()

    await store.write(work)


async def test_stored_texts_are_brought_into_one_form(store: Store) -> None:
    await process(store, "a", 1, "Hallå! I live in Malmö.")
    before = await store.read(lambda transaction: lookup.read_facts(transaction, MIRA, at=LATER))
    assert [evidence.start for evidence in before[0].evidence] == [7]
    await make_old(store)
    await store.write(lambda transaction: convert_stored_texts_to_nfc(transaction.connection()))
    await derive_facts_of_outdated_scopes(store)
    after = await store.read(lambda transaction: lookup.read_facts(transaction, MIRA, at=LATER))
    assert after == before
    assert (await process(store, "a", 1, "Hallå! I live in Malmö.")).run_id is None


async def as_older_version_stored(store: Store, scope: Scope, name: str) -> None:
    def work(transaction: Any) -> None:
        row = transaction.exec(select(ScopeRow).where(col(ScopeRow.name) == scope.id)).one()
        row.name = name
        transaction.add(row)

    await store.write(work)


@pytest.mark.parametrize("has_twin", [True, False])
async def test_scopes_that_differ_by_form_alone_become_one(store: Store, has_twin: bool) -> None:
    await process(store, "a", 1, HOME, scope=JOSE)
    await store.write(
        lambda transaction: scope_rows.set_approval_policy(transaction, JOSE, ApprovalPolicy.HOLD_RETIREMENTS)
    )
    await as_older_version_stored(store, JOSE, JOSE_NFD.id)
    if has_twin:
        await process(store, "b", 2, "I am allergic to nuts.", scope=JOSE)
    assert "Malmö" not in await values(store, JOSE)
    assert await merge_scope_forms(store) == (JOSE_NFD,)
    assert "Malmö" in await values(store, JOSE)
    assert len(await values(store, JOSE)) == 1 + has_twin
    assert await store.read(scope_rows.read_scopes) == [JOSE]
    policy = await store.read(lambda transaction: scope_rows.approval_policy_of(transaction, JOSE))
    assert policy is (ApprovalPolicy.AUTO if has_twin else ApprovalPolicy.HOLD_RETIREMENTS)
    assert await merge_scope_forms(store) == ()
    assert (await process(store, "a", 1, HOME, scope=JOSE)).run_id is None


@pytest.mark.parametrize("what", ["fact", "session", "everything"])
async def test_what_was_forgotten_of_the_other_form_stays_forgotten(store: Store, what: str, tmp_path: Path) -> None:
    await process(store, "a", 1, HOME, scope=JOSE)
    await as_older_version_stored(store, JOSE, JOSE_NFD.id)
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, JOSE_NFD, at=LATER))
    works: Mapping[str, Any] = {
        "fact": lambda erasure: erasure.forget_statements(facts[0].assertion_ids),
        "session": lambda erasure: erasure.forget_session("a"),
        "everything": Erasure.forget_everything,
    }
    await forgetting.erase_in_scope(store, JOSE_NFD, works[what], at=LATER)
    await merge_scope_forms(store)
    await process(store, "a", 1, HOME, scope=JOSE)
    assert await values(store, JOSE) == {}
    await exports.export_scopes(store, tmp_path / "export.jsonl", [JOSE])
    async with Store("sqlite://") as other:
        await other.migrate()
        await imports.import_file(other, tmp_path / "export.jsonl")
        await process(other, "a", 1, HOME, scope=JOSE)
        assert await values(other, JOSE) == {}
    # Said later, it is new.
    now = (LATER + timedelta(days=1)).isoformat()
    messages = [{"type": "TextMessage", "source": "user", "content": HOME, "created_at": now}]
    await process(store, "z", 1, scope=JOSE, state=messages)
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, JOSE, at=LATER + timedelta(days=2)))
    assert [fact.value for fact in facts] == ["Malmö"]
