"""Add which turns of each session were seen, and when first, to tell forgotten turns from new ones."""

import sqlalchemy as sa
from alembic import op

revision: str = "0026"
down_revision: str | None = "0025"


def upgrade() -> None:
    """Apply this version."""
    op.create_table(
        "seen_sessions",
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("stretches", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_seen_sessions_scope_id_scopes")),
        sa.ForeignKeyConstraint(["key_id"], ["tombstone_keys.id"], name=op.f("fk_seen_sessions_key_id_tombstone_keys")),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_seen_sessions")),
    )
    op.create_index(op.f("ix_seen_sessions_scope_id"), "seen_sessions", ["scope_id"])
