"""Which statements were replaced for good and since when, and how long a replaced one is still compared. Pure.

A change without an end, "I live in Oslo now", leaves nothing of the former value. Once several such changes have
replaced a value, later changes need not be compared with it, and a slot may change as often as it likes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from datetime import datetime

from afterword.facts.assertions import Assertion, Cue, Relation, SpeechAct, Verdict
from afterword.facts.validity.judged_pairs import deciding_verdict, is_plain
from afterword.facts.validity.retirement_guard import refusal_reason
from afterword.facts.words import folded

REPLACEMENTS = 8
"""After this many replacements a retired statement is no longer compared with new statements.

One replacement would suffice. The others allow for some of them being undone or corrected.
"""

LAST_REPLACEMENTS = 5
"""After an undo, and in a consolidation, a statement is compared with further ones only if fewer replacements than this
are left."""


def replacement_starts(
    id_: str, by_id: Mapping[str, Assertion], verdicts: Iterable[Verdict], undone_ids: Container[str] = ()
) -> tuple[datetime, ...] | None:
    """Return when the first replacements of a statement were said; None if nothing has replaced it.

    `verdicts` are all verdicts on the statement. A replacement is a change that has
    begun, has no end, and that the guard allows. Those of `undone_ids` do not count.
    """
    judged: dict[str, list[Verdict]] = defaultdict(list)
    is_exception = by_id[id_].valid_to is not None
    for verdict in verdicts:
        if verdict.earlier_id == id_ and verdict.later_id in by_id and verdict.later_id not in undone_ids:
            judged[verdict.later_id].append(verdict)
        is_exception |= verdict.relation is Relation.EXCEPTS and verdict.later_id == id_
    starts = [
        by_id[later_id].said_at
        for later_id, on_pair in judged.items()
        if _is_full_change(deciding_verdict(on_pair))
        and _replaces(by_id[id_], by_id[later_id])
        # Who repeats a general statement leaves what was set apart from it.
        and not (is_exception and is_plain(by_id[later_id]))
    ]
    return tuple(sorted(starts)[: REPLACEMENTS + 1]) or None


def is_replaced_before(earlier: Assertion, later: Assertion, starts: tuple[datetime, ...], count: int) -> bool:
    """Whether `count` replacements were said before the later statement, which has another value.

    Then it changes nothing of the earlier statement, unless it corrects or retracts that. A statement with an end may
    also set days apart, and these stay apart when the earlier value is said again.
    """
    is_denial = later.act is not SpeechAct.STATE or later.cue is Cue.CORRECTION
    if len(starts) < count or is_denial or later.valid_to is not None:
        return False
    begins_after = starts[count - 1] < min(later.said_at, later.valid_from or later.said_at)
    return begins_after and folded(earlier.value) != folded(later.value)


def may_withdraw_in_advance(said: Assertion, retraction: Assertion) -> bool:
    """Whether a later retraction, if it concerns a statement, says that this never held. Then it replaced nothing."""
    is_after = said.act is SpeechAct.STATE is not retraction.act and said.order < retraction.order
    return is_after and (retraction.valid_from or retraction.said_at) <= (said.valid_from or said.said_at)


def _is_full_change(verdict: Verdict) -> bool:
    return verdict.relation is Relation.CHANGES and verdict.remainder is None


def _replaces(earlier: Assertion, later: Assertion) -> bool:
    is_general = later.act is SpeechAct.STATE and later.valid_to is None and not later.limited_to
    has_begun = later.valid_from is None or later.valid_from.date() < later.said_at.date()
    return (
        is_general
        and has_begun
        and refusal_reason(earlier, later, is_same_subject=earlier.slot[0] == later.slot[0]) is None
    )
