"""Convert all texts into Unicode NFC, so that equal words are equal. The facts of changed scopes are derived again."""

from alembic import op

from afterword.store.merging.text_forms import convert_stored_texts_to_nfc

revision: str = "0018"
down_revision: str | None = "0017"


def upgrade() -> None:
    """Apply this version."""
    convert_stored_texts_to_nfc(op.get_bind())
