"""Create the table of requests to models and their costs."""

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    """Apply this version."""
    op.create_table(
        "spendings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("micro_usd", sa.BigInteger(), nullable=True),
        sa.Column("is_estimate", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_spendings_run_id_runs")),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_spendings_scope_id_scopes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spendings")),
    )
    with op.batch_alter_table("spendings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_spendings_day"), ["day"], unique=False)
        batch_op.create_index(batch_op.f("ix_spendings_run_id"), ["run_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_spendings_scope_id_source"), ["scope_id", "source"], unique=False)
