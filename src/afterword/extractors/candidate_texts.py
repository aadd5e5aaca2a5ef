"""Bring the texts of a candidate into clean form, and check how long they are. Pure."""

from __future__ import annotations

import unicodedata

from afterword.extractors.rejection_reasons import RejectedError, RejectionReason
from afterword.privacy.normalisation import undisguised_text

LONGEST_BY_FIELD = {
    "statement": 400,
    "value": 200,
    "subject": 100,
    "former_name": 100,
    "attribute": 60,
    "limited_to": 200,
    "outcome": 200,
}
"""The most characters of each text of a candidate."""


def clean_line(text: str) -> str:
    """Return the text on one line, without control characters, invisible characters and disguised letters."""
    plain = "".join(" " if unicodedata.category(sign) in ("Cc", "Cs") else sign for sign in text)
    return " ".join(undisguised_text(plain).split())


def checked_candidate_text(text: str, field: str) -> str:
    """Return the text. Reject it if it is empty or longer than the field may be."""
    if not text:
        raise RejectedError(RejectionReason.EMPTY, field)
    if len(text) > LONGEST_BY_FIELD[field]:
        raise RejectedError(
            RejectionReason.TOO_LONG, f"{field} ({len(text)} characters, at most {LONGEST_BY_FIELD[field]})"
        )
    return text


def cleaned_optional_text(text: str | None, field: str) -> str | None:
    """Return the text in clean form, or None if it is empty. Reject it if it is longer than the field may be."""
    cleaned = clean_line(text or "")
    return checked_candidate_text(cleaned, field) if cleaned else None
