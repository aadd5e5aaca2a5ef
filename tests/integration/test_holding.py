"""A SQLite file that is held open: short statements in the loop, and everything else as it was."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from afterword.extractors.candidates import Answer
from afterword.extractors.model.answer_schemas import stand_in_class
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import scope_rows
from afterword.store.database.engine import Store

MIRA, BO = Scope.user("mira"), Scope.user("bo")


async def test_two_stores_write_one_file_in_turn(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/afterword.db"
    async with Store(url) as one, Store(url) as other:
        await one.migrate()
        await one.write(lambda db: scope_rows.ensure_scope(db, MIRA))
        counting = [store.write(lambda db: scope_rows.lock_scope(db, MIRA)) for store in (one, other) * 20]
        await asyncio.gather(*counting, other.write(lambda db: scope_rows.ensure_scope(db, BO), lasting=False))
        assert set(await one.read(scope_rows.read_scopes)) == {MIRA, BO}


async def test_a_batch_that_is_brief_hands_out_no_turns_but_their_number(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    message = {"content": "I live in Graz.", "source": "user", "type": "UserMessage"}
    state = {"type": "AssistantAgentState", "llm_context": {"messages": [message]}}
    found = [Saved(MIRA, f"s{day}", state=state, started_at=at + timedelta(days=day)) for day in range(3)]
    async with Store(f"sqlite:///{tmp_path}/afterword.db") as store:
        await store.migrate()
        ended = await run_batch(store, found, extractor=RulesExtractor(), concurrency=1, is_brief=True)
    outcomes = [one for one in ended if isinstance(one, SessionOutcome)]
    assert [(one.turns, one.transcript.turns, one.transcript.layout) for one in outcomes] == [
        (1, (), outcomes[0].transcript.layout)
    ] * 3


def test_the_class_without_fields_has_the_schema_of_the_answer_and_every_caller_its_own_copy() -> None:
    made = stand_in_class(Answer).model_json_schema()
    assert made == Answer.model_json_schema() == stand_in_class(Answer).model_json_schema(by_alias=True)
    made.clear()
    assert stand_in_class(Answer).model_json_schema() == Answer.model_json_schema()
    assert stand_in_class(Answer) is stand_in_class(Answer)
