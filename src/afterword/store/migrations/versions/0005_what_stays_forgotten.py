"""Create the tables of tombstones, which keep what was forgotten from coming back, and of imported runs."""

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"


def upgrade() -> None:
    """Apply this version."""
    op.create_table(
        "tombstone_keys",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("is_own", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tombstone_keys")),
    )
    op.create_table(
        "tombstones",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("mark", sa.String(), nullable=False),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["key_id"], ["tombstone_keys.id"], name=op.f("fk_tombstones_key_id_tombstone_keys")),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_tombstones_scope_id_scopes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tombstones")),
    )
    op.create_index(op.f("ix_tombstones_scope_id_place"), "tombstones", ["scope_id", "place"], unique=False)
    op.create_table(
        "imported_runs",
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("their_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_imported_runs_run_id_runs")),
        sa.PrimaryKeyConstraint("origin", "their_id", name=op.f("pk_imported_runs")),
    )
    op.create_index(op.f("ix_imported_runs_run_id"), "imported_runs", ["run_id"], unique=False)
