"""The text of each turn that an agent is shown, so that it is not computed for each block. Older turns have none."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0016"
down_revision: str | None = "0015"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply this version."""
    op.add_column("turns", sa.Column("shown", sa.String(), nullable=True))


def downgrade() -> None:
    """Take this version back."""
    with op.batch_alter_table("turns") as turns:
        turns.drop_column("shown")
