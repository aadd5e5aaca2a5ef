"""${message}."""

from collections.abc import Sequence

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision: str = ${repr(up_revision)}
down_revision: str | None = ${repr(down_revision)}
branch_labels: str | Sequence[str] | None = ${repr(branch_labels)}
depends_on: str | Sequence[str] | None = ${repr(depends_on)}


def upgrade() -> None:
    """Apply this version."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Take this version back."""
    ${downgrades if downgrades else "pass"}
