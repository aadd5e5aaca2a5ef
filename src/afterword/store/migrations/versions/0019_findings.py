"""Add findings of agents, which findings a scope keeps, and whether agents are told the words of other people."""

import sqlalchemy as sa
from alembic import op

revision: str = "0019"
down_revision: str | None = "0018"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("scopes", sa.Column("findings", sa.JSON(), nullable=True))
    op.add_column("scopes", sa.Column("other_people", sa.Boolean(), nullable=True))
    op.create_table(
        "findings",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("window_id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("statement", sa.String(), nullable=False),
        sa.Column("is_advice", sa.Boolean(), nullable=False),
        sa.Column("source", sa.String(), nullable=True),
        sa.Column("after_tools", sa.Boolean(), nullable=False),
        sa.Column("review", sa.String(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("said_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_findings_scope_id_scopes")),
        sa.ForeignKeyConstraint(["window_id"], ["windows.id"], name=op.f("fk_findings_window_id_windows")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_findings")),
    )
    op.create_index(op.f("ix_findings_scope_id"), "findings", ["scope_id"])
    op.create_index(op.f("ix_findings_window_id"), "findings", ["window_id"])
