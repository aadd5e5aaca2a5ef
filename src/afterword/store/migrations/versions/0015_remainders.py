"""Add what is left of sentences of which a part has ended, and the exceptions of facts."""

import sqlalchemy as sa
from alembic import op

revision: str = "0015"
down_revision: str | None = "0014"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("verdicts", sa.Column("remainder", sa.String(), nullable=True))
    for name in ("exceptions", "rewordings"):
        op.add_column("facts", sa.Column(name, sa.JSON(), nullable=False, server_default=sa.text("'[]'")))
