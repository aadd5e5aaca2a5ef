"""Add how much of a plan a change concerns, and the version of the rules that derived the facts of a scope."""

import sqlalchemy as sa
from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"


def upgrade() -> None:
    """Apply this version."""
    op.add_column("verdicts", sa.Column("extent", sa.String(), nullable=True))
    op.add_column("scopes", sa.Column("derivation", sa.Integer(), nullable=False, server_default=sa.text("0")))
