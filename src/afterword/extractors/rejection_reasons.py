"""The reasons for which a proposed fact (a candidate) is rejected, as codes and in words."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
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


FINAL = frozenset(
    {
        Reason.NOT_ASSERTED,
        Reason.QUARANTINED,
        Reason.PASTED,
        Reason.SECRET,
        Reason.OFF_RECORD,
        Reason.FORGOTTEN,
        Reason.TOO_MANY,
    }
)
"""Reasons with which a candidate is not shown to the extractor again, because it cannot be corrected."""

DETAILS = {
    Reason.TURN_UNKNOWN: "no such turn in this session",
    Reason.QUOTE_MISSING: "these words do not stand in the cited turn",
    Reason.NOT_A_PERSON: "no words of a person are cited",
    Reason.NOT_ACCEPTED: "an agent's words are cited, and no later words of a person that accept them",
    Reason.UNSUPPORTED: "the quoted sentences do not say it",
    Reason.NOT_ASSERTED: "it was not stated as true",
    Reason.SECRET: "it is masked as a secret",
    Reason.EMPTY: "must not be empty",
    Reason.TOO_LONG: "is too long",
    Reason.BAD_TIME: "no such dates, or valid_to lies before valid_from",
    Reason.QUARANTINED: "it reads like an instruction to an assistant, not like something a person tells",
    Reason.PASTED: "these words were pasted or quoted by the person, not said by them",
    Reason.OFF_RECORD: "it was said off the record",
    Reason.FORGOTTEN: "it was forgotten since it was said",
    Reason.TOO_MANY: "the session says more than is kept of one session",
}
