"""${message}."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision: str = ${repr(up_revision)}
down_revision: str | None = ${repr(down_revision)}


def upgrade() -> None:
    """Apply this version."""
    ${upgrades if upgrades else "pass"}
