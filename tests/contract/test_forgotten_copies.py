"""Every copy of forgotten words goes: what agents were served, what tools returned, what agents repeated.

Each form of forgetting is followed by a search through every value of every table and every byte of every file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import SQLModel, select

from afterword import record_session, resume
from afterword.extractors.testing import OracleExtractor
from afterword.facts.assertions import Kind
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.recall.block import hashed_scope_label, in_block_order, render_block_part
from afterword.store import lookup, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.database.statements import insert_rows
from afterword.store.forgetting import erasure
from afterword.store.forgetting.erasure import Erasure
from afterword.store.forgetting.retention import Retention, apply_retention
from afterword.store.forgetting.tombstone_replay import replay_tombstones, write_tombstones
from afterword.store.scope_rows import ApprovalPolicy, scope_key
from afterword.store.tables import RejectionRow, SessionRow, VectorRow, WindowRow
from afterword.store.transfer.exports import export_scopes
from afterword.store.transfer.imports import import_file
from deciding_words import find

LENA, TEAM = Scope.user("lena"), Scope.parse("default/team/apollo")
NOW = datetime(2026, 4, 1, tzinfo=UTC)
VALUE, ELSEWHERE = "Gnarlsburg", "the Zanzibarov wedding begins at noon"


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def messages(*said: tuple[str, str]) -> dict[str, Any]:
    """A saved state of these messages, each with its type."""
    kinds: dict[str, dict[str, Any]] = {
        "SystemMessage": {},
        "UserMessage": {"source": "user"},
        "AssistantMessage": {"source": "assistant", "thought": None},
    }
    entries = [{"content": text, "type": kind, **kinds[kind]} for kind, text in said]
    return {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": entries}}


def result_of_a_tool(text: str) -> dict[str, Any]:
    result = {"content": text, "call_id": "1", "name": "search_memory", "is_error": False}
    return {"type": "FunctionExecutionResultMessage", "content": [result]}


async def served_block(store: Store) -> str:
    def work(transaction: Any) -> str:
        return render_block_part(
            in_block_order(lookup.read_facts(transaction, LENA, at=day(30))), label=hashed_scope_label(LENA)
        )

    return await store.read(work)


async def save(store: Store, scope: Scope, session_id: str, on: int, state: dict[str, Any]) -> None:
    def work(transaction: Any) -> None:
        sessions.save_state(transaction, scope, session_id, component="AssistantAgent", state=state, at=day(on))

    await store.write(work)


async def processed(store: Store, scope: Scope, session_id: str, on: int, **options: Any) -> None:
    saved = Saved(scope, session_id, started_at=day(on), ended_at=day(on))
    await process_session(store, saved, extractor=OracleExtractor(find), **options)


async def fill(store: Store) -> None:
    """Store what a person said, and all the copies of it that agents, people's reviews and failures leave behind."""
    told = (("UserMessage", f"home: {VALUE}"), ("UserMessage", ELSEWHERE), ("AssistantMessage", "Noted."))
    await save(store, LENA, "told", 1, messages(*told))
    await processed(store, LENA, "told", 1)
    block = await served_block(store)
    assert VALUE in block
    for scope, name in ((LENA, "served"), (TEAM, "served elsewhere")):
        state = messages(("SystemMessage", block), ("UserMessage", "drink: oolong"), ("AssistantMessage", "Fine."))
        await save(store, scope, name, 5, state)
        await processed(store, scope, name, 5)
    reminder = f"Remember: {VALUE} it is, and {ELSEWHERE}!"
    state = messages(("UserMessage", "seat: window"), ("AssistantMessage", reminder))
    state["llm_context"]["messages"].insert(0, result_of_a_tool(f"[1] The user's home is {VALUE}."))
    await save(store, LENA, "repeated", 6, state)
    await processed(store, LENA, "repeated", 6)
    await save(store, LENA, "not read yet", 7, state)
    await save(store, LENA, "tried", 8, state)
    await processed(store, LENA, "tried", 8, apply=False)
    await store.write(lambda transaction: scope_rows.set_approval_policy(transaction, LENA, ApprovalPolicy.HOLD_ALL))
    await save(store, LENA, "held", 9, messages(("UserMessage", "shell: zsh"), ("AssistantMessage", reminder)))
    await processed(store, LENA, "held", 9)

    def notes(transaction: Any) -> None:
        window = transaction.exec(select(WindowRow.id).where(WindowRow.source == "session:repeated")).first()
        refusal = {"window_id": window, "ordinal": 9, "reason": "no quote", "statement": reminder, "detail": VALUE}
        insert_rows(transaction, RejectionRow, [refusal])
        row = transaction.exec(select(SessionRow).where(SessionRow.session_id == "repeated")).one()
        row.failure = f"AnswerInvalid: {VALUE}"
        transaction.add(row)
        vector = {"scope_id": scope_key(transaction, LENA), "model": "m", "dimension": 2, "key": "k"}
        insert_rows(transaction, VectorRow, [{**vector, "content": VALUE.encode()}])

    await store.write(notes)


async def everything(store: Store) -> str:
    """Return every value of every table, unpacked, and every byte of the files of a SQLite store."""
    texts: list[str] = []
    with store.connecting(writing=False) as connection:
        for table in SQLModel.metadata.sorted_tables:
            for row in connection.execute(table.select()).all():
                texts += [_unpacked(value) if isinstance(value, bytes) else str(value) for value in row]
    if store.path is not None:
        for file in store.path.parent.glob(f"{store.path.name}*"):
            texts.append(file.read_bytes().decode("latin-1"))
    return "\n".join(texts).casefold()


def _unpacked(value: bytes) -> str:
    try:
        return zlib.decompress(value).decode()
    except zlib.error:
        return value.decode("latin-1")


async def forget_the_fact(store: Store, _: Path) -> None:
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, LENA, at=NOW))
    ids = next(fact.assertion_ids for fact in facts if fact.value == VALUE)
    await erasure.erase_in_scope(store, LENA, lambda erased: erased.forget_statements(ids), at=NOW)


async def forget_what_was_asked(store: Store, _: Path) -> None:
    await store.write(lambda transaction: scope_rows.set_approval_policy(transaction, LENA, ApprovalPolicy.AUTO))
    await save(store, LENA, "asked", 10, messages(("UserMessage", f"forget home: {VALUE}")))
    await processed(store, LENA, "asked", 10)
    assert await erasure.forget_requested_statements(store, LENA, at=NOW) is not None


async def forget_the_session(store: Store, _: Path) -> None:
    await erasure.erase_in_scope(store, LENA, lambda erased: erased.forget_session("told"), at=NOW)


async def forget_before(store: Store, _: Path) -> None:
    await erasure.erase_in_scope(store, LENA, lambda erased: erased.forget_before(day(3)), at=NOW)


async def forget_everything(store: Store, _: Path) -> None:
    await erasure.erase_in_scope(store, LENA, Erasure.forget_everything, at=NOW)


async def forget_by_age_of_session(store: Store, _: Path) -> None:
    await apply_retention(store, LENA, Retention(sessions=timedelta(days=29)), at=day(31))


async def forget_by_age_of_fact(store: Store, _: Path) -> None:
    kinds = {kind: timedelta(days=29) for kind in Kind}
    await apply_retention(store, LENA, Retention(facts=kinds), at=day(31))


async def forget_by_tombstones(store: Store, folder: Path) -> None:
    async with Store("sqlite://") as other:
        await other.migrate()
        await fill(other)
        await forget_the_session(other, folder)
        await write_tombstones(other, folder / "tombstones.jsonl")
    await replay_tombstones(store, folder / "tombstones.jsonl", at=NOW)


FORMS: dict[str, tuple[Callable[[Store, Path], Awaitable[None]], bool]] = {
    "fact": (forget_the_fact, False),
    "asked": (forget_what_was_asked, False),
    "session": (forget_the_session, True),
    "before": (forget_before, True),
    "everything": (forget_everything, True),
    "age of session": (forget_by_age_of_session, True),
    "age of fact": (forget_by_age_of_fact, False),
    "tombstones": (forget_by_tombstones, True),
}
"""Each form of forgetting, and whether it forgets the whole conversation."""


@pytest.mark.parametrize("form", FORMS)
async def test_no_byte_of_forgotten_words_is_left(store: Store, tmp_path: Path, form: str) -> None:
    await fill(store)
    forget, is_whole_session = FORMS[form]
    await forget(store, tmp_path)
    assert await store.compact()
    remaining = await everything(store)
    assert VALUE.casefold() not in remaining
    assert not is_whole_session or "zanzibarov" not in remaining
    assert "oolong" in remaining or form == "everything"
    await export_scopes(store, tmp_path / "export.jsonl", even_asked=True)
    assert VALUE.casefold() not in (tmp_path / "export.jsonl").read_text().casefold()


async def test_an_emptied_block_is_still_a_block_and_what_a_person_said_stays(store: Store) -> None:
    await fill(store)
    await forget_the_session(store, Path())
    state = await store.read(lambda transaction: sessions.load_state(transaction, LENA, "served"))
    block, said, reply = (message["content"] for message in state["llm_context"]["messages"])
    label = hashed_scope_label(LENA)
    assert block == f'<afterword:memory scope="{label}">\n[forgotten].\n</afterword:memory>'
    assert (said, reply) == ("drink: oolong", "Fine.")


class AssistantAgent:
    """A live agent whose context still holds what was forgotten meanwhile."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    async def save_state(self) -> Mapping[str, Any]:
        return self.state

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self.state = dict(state)


@pytest.mark.parametrize("name", ["served", "repeated"])
async def test_a_conversation_that_goes_on_does_not_bring_the_copies_back(store: Store, name: str) -> None:
    await fill(store)
    agent = AssistantAgent(await store.read(lambda transaction: sessions.load_state(transaction, LENA, name)))
    await forget_the_session(store, Path())
    assert await store.compact()
    async with record_session(agent, scope=LENA, session_id=name, store=store):
        pass
    await process_session(store, Saved(LENA, name), extractor=OracleExtractor(find))
    assert VALUE.casefold() not in await everything(store)
    assert await resume(agent, scope=LENA, session_id=name, store=store)
    assert VALUE not in json.dumps(agent.state)


async def test_what_another_conversation_says_too_stays_there(store: Store) -> None:
    await fill(store)
    await store.write(lambda transaction: scope_rows.set_approval_policy(transaction, LENA, ApprovalPolicy.AUTO))
    said = (("UserMessage", f"home: {VALUE}"), ("AssistantMessage", f"So {VALUE}."))
    await save(store, LENA, "said again", 12, messages(*said))
    await processed(store, LENA, "said again", 12)
    await forget_the_session(store, Path())
    turns = await store.read(lambda transaction: sessions.read_turns(transaction, LENA, "said again"))
    assert [turn.text for turn in turns] == [f"home: {VALUE}", f"So {VALUE}."]
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, LENA, at=NOW))
    assert VALUE in {fact.value for fact in facts}


async def test_an_import_counts_no_block_as_forgotten_if_nothing_of_the_file_is_here(
    store: Store, tmp_path: Path
) -> None:
    for number, said in enumerate((f"home: {VALUE}", "drink: oolong"), 1):
        await save(store, LENA, f"s{number}", number, messages(("UserMessage", said)))
        await processed(store, LENA, f"s{number}", number)
    await erasure.erase_in_scope(store, LENA, lambda erasing: erasing.forget_session("s2"), at=NOW)
    state = messages(("SystemMessage", await served_block(store)), ("UserMessage", "seat: window"))
    await save(store, LENA, "served", 5, state)
    await processed(store, LENA, "served", 5)
    await export_scopes(store, tmp_path / "all.jsonl")
    result = await import_file(store, tmp_path / "all.jsonl")
    assert not result.still_here
    assert VALUE in str(await store.read(lambda transaction: sessions.read_turns(transaction, LENA, "served")))
