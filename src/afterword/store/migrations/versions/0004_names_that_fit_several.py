"""Add columns for names that fit several people: verdicts may separate subjects, facts list whom they may be about."""

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("verdicts", sa.Column("parts_subjects", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("facts", sa.Column("may_be", sa.JSON(), nullable=False, server_default="[]"))
