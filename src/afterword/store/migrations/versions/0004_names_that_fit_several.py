"""Names that fit several: verdicts part subjects, facts say whom they may be about."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply this version."""
    op.add_column("verdicts", sa.Column("parts_subjects", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("facts", sa.Column("may_be", sa.JSON(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Take this version back."""
    with op.batch_alter_table("facts") as facts:
        facts.drop_column("may_be")
    with op.batch_alter_table("verdicts") as verdicts:
        verdicts.drop_column("parts_subjects")
