"""Add which statements an agent must never miss. Older statements are recognised by their words when they are read."""

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("assertions", sa.Column("is_flagged", sa.Boolean(), nullable=True))
