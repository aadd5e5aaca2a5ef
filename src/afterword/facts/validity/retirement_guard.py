"""The rules by which code refuses that one assertion retires another, whatever a judge says. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from afterword.facts.assertions import Assertion, Kind, Verdict
from afterword.facts.words import folded, terms


@dataclass(frozen=True, slots=True)
class RefusedRetirement:
    """A retirement that the guard refused, and why. Both assertions stay until a person decides."""

    verdict: Verdict
    reason: str


def refusal_reason(earlier: Assertion, later: Assertion, *, is_same_subject: bool) -> str | None:
    """Return why `later` may not retire `earlier`, or None where it may.

    After a refusal both stay, marked as contested, until a person decides.
    """
    if earlier.scope != later.scope:
        return "the two belong to different scopes"
    if not is_same_subject:
        return "the two are about different subjects"
    if later.authority < earlier.authority:
        return f"the word of lower authority ({later.authority.name.lower()}) came later"
    if later.time_is_guess and earlier.session_id != later.session_id:
        return "the time of the later session is only its file's"
    speakers = {folded(speaker) for speaker in (earlier.speaker, later.speaker) if speaker is not None}
    if earlier.kind is Kind.PREFERENCE and len(speakers) > 1:
        return "one person would retire another person's preference"
    return None


def is_about_less(old: Assertion, new: Assertion) -> bool:
    """Whether `new` is about one occasion and `old` is general: it does not change the general one.

    A statement that names the occasion in its own words is not general.
    """
    if not new.limited_to or folded(old.limited_to or "") == folded(new.limited_to):
        return False
    return not {*terms(new.limited_to)} <= {*terms(old.statement)}
