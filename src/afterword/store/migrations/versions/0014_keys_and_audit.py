"""Create the tables of API keys, audit entries, and requests with an idempotency key."""

import sqlalchemy as sa
from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"


def upgrade() -> None:
    """Apply this version."""
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=True),
        sa.Column("is_read_only", sa.Boolean(), nullable=False),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_keys_digest")),
    )
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=True),
        sa.Column("result", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entries")),
    )
    op.create_index(op.f("ix_audit_entries_key_id"), "audit_entries", ["key_id"])
    op.create_index(op.f("ix_audit_entries_scope"), "audit_entries", ["scope"])
    op.create_table(
        "audited_runs",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("entry_id", sa.Integer(), nullable=False),
        sa.Column("assertion_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["audit_entries.id"], name=op.f("fk_audited_runs_entry_id_audit_entries")
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_audited_runs")),
    )
    op.create_index(op.f("ix_audited_runs_entry_id"), "audited_runs", ["entry_id"])
    op.create_table(
        "repeatable_requests",
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("entry_id", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["audit_entries.id"], name=op.f("fk_repeatable_requests_entry_id_audit_entries")
        ),
        sa.PrimaryKeyConstraint("key_id", "name", name=op.f("pk_repeatable_requests")),
    )
    op.create_index(op.f("ix_repeatable_requests_entry_id"), "repeatable_requests", ["entry_id"])
