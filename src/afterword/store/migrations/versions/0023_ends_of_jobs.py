"""Add when each periodic job last ended, counts of what it did, and how many of its parts failed."""

import sqlalchemy as sa
from alembic import op

revision: str = "0023"
down_revision: str | None = "0022"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("jobs", sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("counts", sa.JSON(), nullable=False, server_default=sa.text("'{}'")))
    op.add_column("jobs", sa.Column("failures", sa.Integer(), nullable=False, server_default=sa.text("0")))
