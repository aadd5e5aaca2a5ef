"""One large memory with everything that the pages show: sessions with their runs, contradictions, costs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from recall_speed import sentence
from sqlalchemy import insert
from sqlmodel import Session, SQLModel

from afterword.facts.assertions import (
    OWNER,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
)
from afterword.facts.scopes import Scope
from afterword.recall.said_index import shown_text_to_store
from afterword.recall.search_terms import TOKENIZER, turn_terms
from afterword.store import ledger
from afterword.store.database.compaction import update_postgres_statistics
from afterword.store.database.engine import Store
from afterword.store.rows import assertion_values, evidence_values, verdict_key, verdict_values
from afterword.store.scope_rows import DERIVATION
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeChangeRow,
    ScopeRow,
    SessionRow,
    SpendingRow,
    TurnRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)

START = datetime(2023, 1, 1, 9, tzinfo=UTC)
TURNS = 10
CHANGED_EVERY, CONTESTED_EVERY = 20, 500
"""Of so many facts one replaces the fact before it, and of so many one contradicts it without the right to."""
TABLES: tuple[type[SQLModel], ...] = (
    *(ScopeRow, SessionRow, TurnRow, RunRow, WindowRow, RunWindowRow, AssertionRow, EvidenceRow),
    *(WindowAssertionRow, VerdictRow, RunVerdictRow, SpendingRow, ScopeChangeRow),
)
Rows = dict[type[SQLModel], list[dict[str, Any]]]


async def fill_memory(store: Store, scope: Scope, facts: int, sessions: int) -> None:
    """Write a memory of so many facts from so many sessions of ten turns, as processing would leave it."""
    rows: Rows = {table: [] for table in TABLES}
    names = {"tenant": scope.tenant, "kind": str(scope.kind), "name": scope.id}
    rows[ScopeRow] = [{"id": 1, **names, "revision": sessions, "policy": "auto", "stamp": "", "derivation": DERIVATION}]
    chance, before = random.Random(1), None
    for number in range(sessions):
        said = statements(scope, chance, number, range(number * facts // sessions, (number + 1) * facts // sessions))
        add_session(rows, chance, number, said)
        for assertion in said:
            if before is not None and assertion.attribute == before.attribute:
                add_verdict(rows, scope, number, before, assertion)
            before = assertion
    version = {"scope_id": 1, "revision": sessions, "stamp": "", "source": "", "is_unlinked": False}
    rows[ScopeChangeRow] = [{**version, "fact_ids": []}]
    with store.connecting(writing=True) as connection:
        for table in TABLES:
            if rows[table]:
                connection.execute(insert(table), rows[table])

    def derive(transaction: Session) -> None:
        ledger.derive_and_store_facts(transaction, scope)

    await store.write(derive)
    with store.connecting(writing=True) as connection:
        update_postgres_statistics(connection)


def said_at(session: int) -> datetime:
    """Return when a session took place."""
    return START + timedelta(hours=8 * session)


def statements(scope: Scope, chance: random.Random, session: int, numbers: Sequence[int]) -> list[Assertion]:
    """Return what a person says in a session, a statement a turn."""
    made = []
    for place, number in enumerate(numbers):
        # The value is a word that few other statements have, as names and places are.
        value = f"{sentence(chance, 1)}{sentence(chance, 1)}".capitalize()
        text = f"{sentence(chance, 8)} {value}"
        is_contested, is_change = number % CONTESTED_EVERY == 1, number % CHANGED_EVERY == 1
        source = EvidenceKind.APPLICATION if is_contested else EvidenceKind.TURN
        evidence = Evidence(source, text, f"s{session}", 2 * place + 1, "user", 0)
        made.append(
            Assertion(
                id=f"{number:032x}",
                scope=scope,
                session_id=f"s{session}",
                act=SpeechAct.STATE,
                kind=tuple(Kind)[number // CHANGED_EVERY % len(Kind)],
                subject=OWNER if number // CHANGED_EVERY % 5 else f"person {number // CHANGED_EVERY % 60}",
                attribute=f"note_{number - 1 if is_change else number}",
                value=value,
                statement=text,
                speaker="user",
                authority=Authority.APPLICATION if is_contested else Authority.STATED,
                said_at=said_at(session) + timedelta(minutes=place),
                evidence=(evidence,),
            )
        )
    return made


def add_session(rows: Rows, chance: random.Random, number: int, said: Sequence[Assertion]) -> None:
    """Add a session: its turns, and the run that read them."""
    name, began, key = f"s{number}", said_at(number), number + 1
    rows[SessionRow].append(
        {"id": key, "scope_id": 1, "session_id": name, "progress": "done", "humans": ["user"], "assumed": []}
        | {"skipped": {}, "attempts": 0, "started_at": began, "updated_at": began}
    )
    texts = {assertion.evidence[0].turn: assertion.statement for assertion in said}
    for turn in range(1, TURNS + 1):
        speaker, role = ("user", "human") if turn % 2 else ("assistant", "agent")
        text = texts.get(turn) or sentence(chance)
        found = {
            "search_terms": TOKENIZER + turn_terms(began, "user", text),
            "shown": shown_text_to_store("user", text),
        }
        rows[TurnRow].append(
            {"session_pk": key, "number": turn, "speaker": speaker, "role": role, "text": text, "said_at": began}
            | {"time_is_guess": False}
            | (found if role == "human" else dict.fromkeys(found))
        )
    source = ledger.session_run_source(name)
    rows[RunRow].append(
        {"id": key, "scope_id": 1, "session_pk": key, "source": source, "purpose": "session", "status": "applied"}
        | {"extractor": "model", "judge": "model", "started_at": began, "applied_at": began, "applied_revision": key}
        | {"calls": 2, "prompt_tokens": 3000, "completion_tokens": 300, "counts": {"assertions": len(said)}}
    )
    rows[WindowRow].append({"id": key, "scope_id": 1, "source": source, "key": "w"})
    rows[RunWindowRow].append({"run_id": key, "ordinal": 0, "window_id": key})
    for assertion in said:
        rows[AssertionRow].append(assertion_values(assertion, 1, began))
        rows[EvidenceRow] += evidence_values(assertion)
        rows[WindowAssertionRow].append({"window_id": key, "assertion_id": assertion.id})
    rows[SpendingRow].append(
        {"scope_id": 1, "source": source, "run_id": key, "purpose": "session", "model": "m", "day": began.date()}
        | {"asked_at": began, "status": "answered", "calls": 2, "prompt_tokens": 3000, "completion_tokens": 300}
        | {"micro_usd": 900}
    )


def add_verdict(rows: Rows, scope: Scope, session: int, earlier: Assertion, later: Assertion) -> None:
    """Add that the later of two statements replaces the earlier."""
    verdict = Verdict(earlier.id, later.id, Relation.CHANGES, "another value of the same", "model")
    key = verdict_key(scope, earlier, later, "model")
    rows[VerdictRow].append(verdict_values(verdict, key, 1, later.said_at))
    rows[RunVerdictRow].append({"run_id": session + 1, "verdict_key": key})
