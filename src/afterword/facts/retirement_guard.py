"""Which retirements code refuses, whatever a judge says. Pure."""

from __future__ import annotations

from afterword.facts.assertions import Assertion, Kind
from afterword.facts.words import folded


def refusal_reason(earlier: Assertion, later: Assertion, *, are_one: bool) -> str | None:
    """Return why `later` may not retire `earlier`, or None where it may.

    `are_one` says that their subjects are known to be one. What is refused leaves both standing and contested, for a
    person to settle.
    """
    if earlier.scope != later.scope:
        return "the two belong to different scopes"
    if not are_one:
        return "the two are about different subjects"
    if later.authority < earlier.authority:
        return f"the word of lower authority ({later.authority.name.lower()}) came later"
    if later.time_is_guess and earlier.session_id != later.session_id:
        return "the time of the later session is only its file's"
    if earlier.kind is Kind.PREFERENCE and _differ(earlier.speaker, later.speaker):
        return "one person would retire another person's preference"
    return None


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and folded(one) != folded(other)
