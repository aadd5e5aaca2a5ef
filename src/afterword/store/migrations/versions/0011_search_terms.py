"""Add the words by which a search finds a fact or a turn, so that texts are not tokenised at every read of a scope."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from afterword.recall.search_terms import TOKENIZER, fact_terms, turn_terms

revision: str = "0011"
down_revision: str | None = "0010"

BATCH = 1000


def upgrade() -> None:
    """Apply this version."""
    op.add_column("facts", sa.Column("search_terms", sa.String(), nullable=True))
    op.add_column("turns", sa.Column("search_terms", sa.String(), nullable=True))
    _fill_facts()
    _fill_turns()


def _fill_facts() -> None:
    facts = sa.table("facts", *map(sa.column, ("id", "lead_id", "search_terms")))
    names = ("id", "subject", "statement", "attribute", "value")
    lead = sa.table("assertions", *map(sa.column, names)).alias("lead")
    first = sa.table("assertions", sa.column("id"), sa.column("said_at", sa.DateTime(timezone=True))).alias("first")
    query = (
        sa.select(facts.c.id, first.c.said_at, lead.c.subject, lead.c.statement, lead.c.attribute, lead.c.value)
        .join_from(facts, lead, lead.c.id == facts.c.lead_id)
        .join(first, first.c.id == facts.c.id)
    )
    change = sa.update(facts).where(facts.c.id == sa.bindparam("key"))
    for rows in _batches(query, facts.c.id):
        values = [{"key": key, "made": TOKENIZER + fact_terms(_utc(said_at), *words)} for key, said_at, *words in rows]
        op.get_bind().execute(change.values(search_terms=sa.bindparam("made")), values)


def _fill_turns() -> None:
    names = ("session_pk", "number", "role", "speaker", "text", "search_terms")
    turns = sa.table("turns", *map(sa.column, names), sa.column("said_at", sa.DateTime(timezone=True)))
    columns = (turns.c.session_pk, turns.c.number, turns.c.said_at, turns.c.speaker, turns.c.text)
    query = sa.select(*columns).where(turns.c.role == "human")
    is_turn = (turns.c.session_pk == sa.bindparam("session")) & (turns.c.number == sa.bindparam("turn"))
    change = sa.update(turns).where(is_turn)
    for rows in _batches(query, turns.c.session_pk, turns.c.number):
        values = [
            {"session": session, "turn": number, "made": TOKENIZER + turn_terms(said_at and _utc(said_at), *words)}
            for session, number, said_at, *words in rows
        ]
        op.get_bind().execute(change.values(search_terms=sa.bindparam("made")), values)


def _batches(query: Any, *key: Any) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query, which begin with their key, in the order of the key."""
    ordered = query.order_by(*key).limit(BATCH)
    rows = op.get_bind().execute(ordered).all()
    while rows:
        yield rows
        after_last = sa.tuple_(*key) > sa.tuple_(*map(sa.literal, rows[-1][: len(key)]))
        rows = op.get_bind().execute(ordered.where(after_last)).all()


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
