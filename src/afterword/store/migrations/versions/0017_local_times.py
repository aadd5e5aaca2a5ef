"""The offset of the place where something was said, and the time zone of a scope."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply this version."""
    for table in ("turns", "assertions"):
        op.add_column(table, sa.Column("utc_offset_s", sa.Integer(), nullable=True))
    op.add_column("scopes", sa.Column("zone", sa.String(), nullable=True))


def downgrade() -> None:
    """Take this version back."""
    for table, name in (("scopes", "zone"), ("assertions", "utc_offset_s"), ("turns", "utc_offset_s")):
        with op.batch_alter_table(table) as altered:
            altered.drop_column(name)
