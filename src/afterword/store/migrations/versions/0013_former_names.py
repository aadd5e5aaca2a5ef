"""What the subject of a statement was called before."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply this version."""
    op.add_column("assertions", sa.Column("former_name", sa.String(), nullable=True))


def downgrade() -> None:
    """Take this version back."""
    with op.batch_alter_table("assertions") as assertions:
        assertions.drop_column("former_name")
