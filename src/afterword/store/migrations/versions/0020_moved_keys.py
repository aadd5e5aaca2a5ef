"""Create the table of the API keys that a merge or a rename of a scope moved."""

import sqlalchemy as sa
from alembic import op

revision: str = "0020"
down_revision: str | None = "0019"


def upgrade() -> None:
    """Apply this version."""
    op.create_table(
        "moved_keys",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key_id", name=op.f("pk_moved_keys")),
    )
