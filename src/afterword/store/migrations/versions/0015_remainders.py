"""The remainders of sentences of which a part has ended, and the exceptions of facts."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0015"
down_revision: str | None = "0014"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply this version."""
    op.add_column("verdicts", sa.Column("remainder", sa.String(), nullable=True))
    for name in ("exceptions", "rewordings"):
        op.add_column("facts", sa.Column(name, sa.JSON(), nullable=False, server_default=sa.text("'[]'")))


def downgrade() -> None:
    """Take this version back."""
    with op.batch_alter_table("facts") as facts:
        facts.drop_column("rewordings")
        facts.drop_column("exceptions")
    with op.batch_alter_table("verdicts") as verdicts:
        verdicts.drop_column("remainder")
