"""How much of a plan a change takes, and by which rules the facts of a scope were derived."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply this version."""
    op.add_column("verdicts", sa.Column("extent", sa.String(), nullable=True))
    op.add_column("scopes", sa.Column("derivation", sa.Integer(), nullable=False, server_default=sa.text("0")))


def downgrade() -> None:
    """Take this version back."""
    with op.batch_alter_table("scopes") as scopes:
        scopes.drop_column("derivation")
    with op.batch_alter_table("verdicts") as verdicts:
        verdicts.drop_column("extent")
