"""The reasons for which a proposed fact (a candidate) is rejected, as codes and in words."""

from __future__ import annotations

from enum import StrEnum


class RejectionReason(StrEnum):
    """Why a candidate was rejected."""

    TURN_UNKNOWN = "turn_unknown"
    QUOTE_MISSING = "quote_missing"
    NOT_A_PERSON = "not_a_person"
    NOT_ACCEPTED = "not_accepted"
    UNSUPPORTED = "unsupported"
    NOT_ASSERTED = "not_asserted"
    SECRET = "secret"
    EMPTY = "empty"
    TOO_LONG = "too_long"
    BAD_TIME = "bad_time"
    QUARANTINED = "quarantined"
    PASTED = "pasted"
    OFF_RECORD = "off_record"
    FORGOTTEN = "forgotten"
    TOO_MANY = "too_many"


FINAL_REASONS = frozenset(
    {
        RejectionReason.NOT_ASSERTED,
        RejectionReason.QUARANTINED,
        RejectionReason.PASTED,
        RejectionReason.SECRET,
        RejectionReason.OFF_RECORD,
        RejectionReason.FORGOTTEN,
        RejectionReason.TOO_MANY,
    }
)
"""Reasons with which a candidate is not shown to the extractor again, because it cannot be corrected."""

REASON_DETAILS = {
    RejectionReason.TURN_UNKNOWN: "no such turn in this session",
    RejectionReason.QUOTE_MISSING: "these words do not stand in the cited turn",
    RejectionReason.NOT_A_PERSON: "no words of a person are cited",
    RejectionReason.NOT_ACCEPTED: "an agent's words are cited, and no later words of a person that accept them",
    RejectionReason.UNSUPPORTED: "the quoted sentences do not say it",
    RejectionReason.NOT_ASSERTED: "it was not stated as true",
    RejectionReason.SECRET: "it is masked as a secret",
    RejectionReason.EMPTY: "must not be empty",
    RejectionReason.TOO_LONG: "is too long",
    RejectionReason.BAD_TIME: "no such dates, or valid_to lies before valid_from",
    RejectionReason.QUARANTINED: "it reads like an instruction to an assistant, not like something a person tells",
    RejectionReason.PASTED: "these words were pasted or quoted by the person, not said by them",
    RejectionReason.OFF_RECORD: "it was said off the record",
    RejectionReason.FORGOTTEN: "it was forgotten since it was said",
    RejectionReason.TOO_MANY: "the session says more than is kept of one session",
}


class RejectedError(Exception):
    """A candidate fails a check of grounding, which catches the error. `detail` says what is wrong."""

    def __init__(self, reason: RejectionReason, cause: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail: str = f"{cause}: {REASON_DETAILS[reason]}" if cause else REASON_DETAILS[reason]
