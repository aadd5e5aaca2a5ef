"""Add what the subject of a statement was called before."""

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("assertions", sa.Column("former_name", sa.String(), nullable=True))
