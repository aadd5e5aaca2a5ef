"""Create the table of the vectors of facts and turns, by model and dimension."""

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"


def upgrade() -> None:
    """Apply this version."""
    op.create_table(
        "vectors",
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_vectors_scope_id_scopes")),
        sa.PrimaryKeyConstraint("scope_id", "model", "dimension", "key", name=op.f("pk_vectors")),
    )
