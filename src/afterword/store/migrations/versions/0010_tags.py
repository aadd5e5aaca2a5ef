"""Add the tags that an application gives to the statements that it enters."""

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("assertions", sa.Column("tags", sa.String(), nullable=True))
