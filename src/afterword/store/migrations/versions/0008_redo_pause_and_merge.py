"""Add when an undone run was applied again, since when a scope is paused, and which sources a merge has moved."""

import sqlalchemy as sa
from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("runs", sa.Column("redone_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("runs", sa.Column("caused_by", sa.Integer(), nullable=True))
    op.add_column("scopes", sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("scopes", sa.Column("sessions_not_kept", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.create_table(
        "moved_sources",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("former_source", sa.String(), nullable=False),
        sa.Column("former_scope_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_moved_sources_run_id_runs")),
        sa.ForeignKeyConstraint(
            ["former_scope_id"], ["scopes.id"], name=op.f("fk_moved_sources_former_scope_id_scopes")
        ),
        sa.PrimaryKeyConstraint("run_id", "source", name=op.f("pk_moved_sources")),
    )
    op.create_index(op.f("ix_moved_sources_former_scope_id"), "moved_sources", ["former_scope_id"])
