"""Add the UTC offset of the place where something was said, and the time zone of a scope."""

import sqlalchemy as sa
from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"


def upgrade() -> None:
    """Apply this version."""
    for table in ("turns", "assertions"):
        op.add_column(table, sa.Column("utc_offset_s", sa.Integer(), nullable=True))
    op.add_column("scopes", sa.Column("zone", sa.String(), nullable=True))
