"""What somebody says counts from their own day: the offset of a turn is kept wherever the turn goes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import lookup, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure as forgetting
from afterword.store.forgetting.erasure import Erasure
from afterword.store.transfer import exports, imports

MIRA = Scope.user("mira")
LATER = datetime(2026, 4, 1, tzinfo=UTC)
SYDNEY = "2026-03-02T08:00:00+11:00"


async def process(store: Store, *said: str, at: str | None = SYDNEY, **more: Any) -> SessionOutcome:
    messages = [{"type": "TextMessage", "source": "user", "content": words, "created_at": at} for words in said]
    saved = Saved(MIRA, "monday", state=messages, **more)
    return await process_session(store, saved, extractor=RulesExtractor(), judge=RulesJudge())


async def days(store: Store) -> list[tuple[date, date | None]]:
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, MIRA, at=LATER))
    return [(fact.said_at.date(), fact.valid_from.date() if fact.valid_from else None) for fact in facts]


async def turns(store: Store) -> list[str]:
    read = await store.read(lambda transaction: sessions.read_turns(transaction, MIRA, "monday"))
    return [turn.said_at.isoformat() for turn in read if turn.said_at]


@pytest.mark.parametrize(
    ("at", "said_on", "from_day"),
    [
        (SYDNEY, date(2026, 3, 2), date(2026, 3, 3)),
        ("2026-03-01T21:00:00Z", date(2026, 3, 1), date(2026, 3, 2)),
        ("2026-03-02T03:00:00-08:00", date(2026, 3, 2), date(2026, 3, 3)),
    ],
)
async def test_tomorrow_follows_the_day_of_the_speaker(store: Store, at: str, said_on: date, from_day: date) -> None:
    await process(store, "I'm moving to Oslo tomorrow.", at=at)
    assert await days(store) == [(said_on, from_day)]


async def test_a_day_begins_where_its_speaker_is(store: Store) -> None:
    await process(store, "I'm moving to Oslo tomorrow.")
    (fact,) = await store.read(lambda transaction: lookup.read_facts(transaction, MIRA, at=LATER))
    assert fact.valid_from == datetime(2026, 3, 2, 13, tzinfo=UTC)


async def test_an_offset_survives_store_export_and_import(store: Store, tmp_path: Path) -> None:
    await process(store, "I'm moving to Oslo tomorrow.")
    before = await days(store), await turns(store)
    assert before[1] == [SYDNEY]
    assert (await process(store, "I'm moving to Oslo tomorrow.")).run_id is None  # nothing is read again
    file = tmp_path / "export.jsonl"
    await exports.export_scopes(store, file)
    async with Store("sqlite://") as other:
        await other.migrate()
        await imports.import_file(other, file)
        assert (await days(other), await turns(other)) == before


async def test_an_offset_survives_the_forgetting_of_another_fact(store: Store) -> None:
    await process(store, "I'm moving to Oslo tomorrow.", "I am allergic to nuts.")
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, MIRA, at=LATER))
    ids = next(fact.assertion_ids for fact in facts if "nuts" in fact.statement)

    def work(erasure: Erasure) -> None:
        erasure.forget_statements(ids)

    await forgetting.erase_in_scope(store, MIRA, work, at=LATER)
    assert await days(store) == [(date(2026, 3, 2), date(2026, 3, 3))]
    assert await turns(store) == [SYDNEY, SYDNEY]


@pytest.mark.parametrize("at", ["2026-03-02T08:00:00", "2026-03-01T21:00:00Z"])
async def test_a_time_without_an_offset_is_one_of_the_scope(store: Store, at: str) -> None:
    await store.write(lambda transaction: scope_rows.set_zone(transaction, MIRA, "Australia/Sydney"))
    await process(store, "I'm moving to Oslo tomorrow.", at=at)
    assert await days(store) == [(date(2026, 3, 2), date(2026, 3, 3))]
    assert await turns(store) == [SYDNEY]


async def test_an_offset_wins_over_the_zone_of_the_scope(store: Store) -> None:
    await store.write(lambda transaction: scope_rows.set_zone(transaction, MIRA, "America/New_York"))
    await process(store, "I'm moving to Oslo tomorrow.")
    assert await turns(store) == [SYDNEY]


async def test_the_zone_of_the_store_stands_in_for_that_of_the_scope(tmp_path: Path) -> None:
    from afterword.facts.local_time import read_zone

    async with Store(f"sqlite:///{tmp_path}/afterword.db", zone=read_zone("Australia/Sydney")) as store:
        await store.migrate()
        await process(store, "I live in Perth.", at=None, started_at=datetime(2026, 3, 2, 8))
        assert await turns(store) == [SYDNEY]


async def test_a_session_is_read_again_in_a_zone_that_was_set_later(store: Store) -> None:
    await process(store, "I'm moving to Oslo tomorrow.", at="2026-03-01T21:00:00Z")
    assert await days(store) == [(date(2026, 3, 1), date(2026, 3, 2))]
    await store.write(lambda transaction: scope_rows.set_zone(transaction, MIRA, "Australia/Sydney"))
    again = Saved(MIRA, "monday", reread=True)
    await process_session(store, again, extractor=RulesExtractor(), judge=RulesJudge())
    assert await days(store) == [(date(2026, 3, 2), date(2026, 3, 3))]


async def test_the_zone_of_a_scope_is_exported(store: Store, tmp_path: Path) -> None:
    await store.write(lambda transaction: scope_rows.set_zone(transaction, MIRA, "Asia/Tokyo"))
    await exports.export_scopes(store, tmp_path / "export.jsonl")
    async with Store("sqlite://") as other:
        await other.migrate()
        await imports.import_file(other, tmp_path / "export.jsonl")
        zone = await other.read(lambda transaction: scope_rows.zone_of(transaction, MIRA, UTC))
    assert str(zone) == "Asia/Tokyo"
