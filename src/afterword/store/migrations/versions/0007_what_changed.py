"""Add which facts each revision of a scope changed, and a random stamp, which tells copies of a store apart."""

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("scopes", sa.Column("stamp", sa.String(), nullable=False, server_default=""))
    op.create_table(
        "scope_changes",
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("stamp", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("fact_ids", sa.JSON(), nullable=False),
        sa.Column("is_unlinked", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_scope_changes_scope_id_scopes")),
        sa.PrimaryKeyConstraint("scope_id", "revision", name=op.f("pk_scope_changes")),
    )
