"""Add the text of a turn that agents are shown, so that it is not computed for each block. Older turns have none."""

import sqlalchemy as sa
from alembic import op

revision: str = "0016"
down_revision: str | None = "0015"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("turns", sa.Column("shown", sa.String(), nullable=True))
