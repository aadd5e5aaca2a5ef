"""Texts in NFC: one word is stored in one form. The facts of the scopes that change are derived again."""

from collections.abc import Sequence

from alembic import op

from afterword.store.merging.text_forms import compose_stored_texts

revision: str = "0018"
down_revision: str | None = "0017"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply this version."""
    compose_stored_texts(op.get_bind())


def downgrade() -> None:
    """Take this version back: an older program reads texts in NFC as well."""
