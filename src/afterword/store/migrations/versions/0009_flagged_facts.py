"""Which statements an agent must never miss. Older ones are recognised by their words when they are read."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply this version."""
    op.add_column("assertions", sa.Column("is_flagged", sa.Boolean(), nullable=True))


def downgrade() -> None:
    """Take this version back."""
    with op.batch_alter_table("assertions") as assertions:
        assertions.drop_column("is_flagged")
