"""The rules by which code refuses to let one assertion retire another, whatever a judge says. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from afterword.facts.assertions import Assertion, Kind, Verdict
from afterword.facts.words import folded, terms


@dataclass(frozen=True, slots=True)
class RefusedRetirement:
    """A verdict whose later assertion may not retire the earlier one, and why. Both stay until a person decides."""

    verdict: Verdict
    reason: str


def refusal_reason(earlier: Assertion, later: Assertion, *, is_same_subject: bool) -> str | None:
    """Return why `later` may not retire `earlier`, None if it may.

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


def is_old_more_general(old: Assertion, new: Assertion) -> bool:
    """Whether `new` is about one occasion and `old` is general, so that `new` does not change `old`.

    If the sentence of `old` names the occasion, it is not general.
    """
    if not new.limited_to or folded(old.limited_to or "") == folded(new.limited_to):
        return False
    return not {*terms(new.limited_to)} <= {*terms(old.statement)}
