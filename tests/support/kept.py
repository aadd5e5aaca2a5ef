"""What is kept for Lena, and what her memory finds of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from autogen_core.memory import Memory, MemoryContent, MemoryMimeType
from sqlmodel import select

from afterword.facts.assertions import OWNER, Assertion, Authority, Evidence, EvidenceKind, Kind, SpeechAct, Verdict
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.store import ledger, lookup, scope_rows
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.tables import RunRow

LENA = Scope.user("lena")
SAID_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXT = MemoryMimeType.TEXT


def text(content: str, **metadata: Any) -> MemoryContent:
    return MemoryContent(content=content, mime_type=TEXT, metadata=metadata)


async def texts(memory: Memory, query: str = "") -> list[Any]:
    return [one.content for one in (await memory.query(query)).results]


async def facts_of(store: Store, scope: Scope = LENA) -> list[Fact]:
    with store.reading() as db:
        return lookup.read_facts(db, scope, at=datetime.now(UTC))


def stated(statement: str, number: int = 1, **changes: Any) -> Assertion:
    said = {
        "id": f"{number:020d}",
        "scope": LENA,
        "session_id": "s1",
        "act": SpeechAct.STATE,
        "kind": Kind.ENTITY,
        "subject": OWNER,
        "attribute": "note",
        "value": statement,
        "statement": statement,
        "speaker": "user",
        "authority": Authority.STATED,
        "said_at": SAID_AT + timedelta(minutes=number),
        "evidence": (Evidence(EvidenceKind.TURN, statement, "s1", number, "user"),),
    }
    return Assertion(**{**said, **changes})


async def keep(store: Store, *assertions: Assertion, scope: Scope = LENA) -> None:
    with store.writing() as db:
        revision = scope_rows.revision_of(db, scope)
        reading = WindowReading(f"w{revision}", 1, 9, assertions)
        proposal = Proposal(scope, f"session:s{revision}", "session", "test", "test", SAID_AT, revision, (reading,))
        ledger.apply_run(db, scope, ledger.propose_run(db, proposal), SAID_AT)


async def run_ids(store: Store, purpose: str) -> list[int]:
    with store.reading() as db:
        rows = db.exec(select(RunRow).where(RunRow.purpose == purpose)).all()
    return [row.id for row in rows if row.id is not None]


def run(store: Store, source: str, assertions: tuple[Assertion, ...], verdicts: tuple[Verdict, ...] = ()) -> int:
    """Store and apply one run with these statements and verdicts; return its number."""
    with store.writing() as transaction:
        revision = scope_rows.revision_of(transaction, LENA)
        reading = WindowReading(source, 1, 9, assertions)
        proposal = Proposal(LENA, source, "session", "test", "test", SAID_AT, revision, (reading,), verdicts)
        run_id = ledger.propose_run(transaction, proposal)
        ledger.apply_run(transaction, LENA, run_id, SAID_AT)
        return run_id
