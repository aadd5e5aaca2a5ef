"""Create indexes that find the facts of a session, and renamed subjects, without reading a whole scope."""

import sqlalchemy as sa
from alembic import op

revision: str = "0022"
down_revision: str | None = "0021"


def upgrade() -> None:
    """Apply this version."""
    op.create_index(op.f("ix_evidence_session_id"), "evidence", ["session_id"])
    is_renaming = sa.text("former_name IS NOT NULL")
    op.create_index(
        "ix_assertions_renaming", "assertions", ["scope_id"], sqlite_where=is_renaming, postgresql_where=is_renaming
    )
