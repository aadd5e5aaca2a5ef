"""Find the facts that a change may affect, and the statements that a fact depends on, from nearby verdicts only. Pure.

A fact depends on its own statements, on the statements that were judged with them, and on statements that decide
whether those took effect. It does not depend on statements further away in a chain of changes. So the cost of a change
does not grow with the number of earlier changes of a slot (an attribute of a subject).

A change without an end ("I live in Oslo now") leaves no part of the former value. After several such changes, later
statements are no longer compared with this value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from afterword.facts.assertions import (
    PERSON,
    RETIRING_RELATIONS,
    Assertion,
    Cue,
    Relation,
    SpeechAct,
    Verdict,
    deciding_verdict,
)
from afterword.facts.validity.periods import is_undated_and_unmarked
from afterword.facts.validity.retirement_guard import refusal_reason
from afterword.facts.words import folded

_IN_ONE_FACT = frozenset({Relation.SAME, Relation.CONTINUES})
_BINDING = _IN_ONE_FACT | {Relation.NARROWS, Relation.CORRECTS}
_AFFECTING_OTHER_FACTS = RETIRING_RELATIONS | {Relation.EXCEPTS}
"""The relations by which a statement affects another fact: when it holds, or which exceptions are told with it."""
_UNDOING = frozenset({Relation.RETRACTS, Relation.CORRECTS})


REPLACEMENTS = 8
"""After this many replacements a retired statement is no longer compared with new statements.

One replacement would suffice. More are required because some of them may be undone or corrected.
"""
LAST_REPLACEMENTS = 5
"""After an undo, and in a consolidation, a statement is compared with further ones only if fewer replacements than this
are left."""


class JudgedStatements(Protocol):
    """Statements by id, and the verdicts on each of them."""

    @property
    def by_id(self) -> Mapping[str, Assertion]:
        """The live statements."""

    @property
    def verdicts_by_id(self) -> Mapping[str, tuple[Verdict, ...]]:
        """The verdicts on each statement. A verdict may name a statement that is not live."""


def affected_ids(
    before: JudgedStatements, after: JudgedStatements, changed_ids: Iterable[str], renamed_ids: Iterable[str]
) -> set[str]:
    """Return the statements of all facts that may differ between two states.

    `changed_ids` were added, removed or judged again. The subject names of `renamed_ids` now mean somebody else.
    """
    sides = (before, after)
    changed, moved = {*changed_ids}, {*renamed_ids}
    for id_ in tuple(changed):
        if before.by_id.get(id_) != after.by_id.get(id_):
            moved.add(id_)
        for verdict in {*_verdicts_on_live_pairs(before, id_)} ^ {*_verdicts_on_live_pairs(after, id_)}:
            changed.update(verdict.pair)
            if verdict.relation in _IN_ONE_FACT or _is_about_subjects(verdict):
                moved.update(verdict.pair)
    beyond = _ends_of_edges(sides, _binding_closure(sides, moved), _affects_other_fact)
    changed |= beyond
    own = _binding_closure(sides, changed | moved)
    if uncertain := _ids_whose_facts_may_lose_effect(sides, changed - moved):
        beyond = _ends_of_edges(sides, _binding_closure(sides, moved | uncertain), _affects_other_fact)
    return _binding_closure(sides, own | beyond)


def _ids_whose_facts_may_lose_effect(sides: Sequence[JudgedStatements], ids: Iterable[str]) -> set[str]:
    """Return those of the statements whose facts have a statement that may lose its effect."""
    unchecked, uncertain = {*ids}, set[str]()
    while unchecked:
        fact = _binding_closure(sides, (next(iter(unchecked)),))  # equal for each statement of the fact
        if any(_may_lose_effect(sides, id_) for id_ in fact):
            uncertain |= unchecked & fact
        unchecked -= fact
    return uncertain


def ids_needed_for_histories(known: JudgedStatements, ids: Iterable[str]) -> set[str]:
    """Return these statements and all statements on which the histories of their facts depend."""
    sides = (known,)
    own = _binding_closure(sides, ids)
    judged = _binding_closure(sides, own | _ends_of_edges(sides, own, _affects_other_fact))
    dated = _binding_closure(sides, (id_ for id_ in judged if id_ in known.by_id and _has_own_days(known.by_id[id_])))
    deciding = _ends_of_edges(sides, judged, lambda verdict: verdict.relation is Relation.RETRACTS)
    context = _binding_closure(sides, judged | deciding | _ends_of_edges(sides, dated, _affects_other_fact))
    return context | _ends_of_edges(sides, context, _is_about_subjects)


def _verdicts_on_live_pairs(known: JudgedStatements, id_: str) -> list[Verdict]:
    """Return the verdicts on a statement whose other statement is live too."""
    verdicts = known.verdicts_by_id.get(id_, ()) if id_ in known.by_id else ()
    return [verdict for verdict in verdicts if _other_id(verdict, id_) in known.by_id]


def _connected_ids(
    known: JudgedStatements, id_: str, is_edge: Callable[[Verdict], bool], excluded: Container[str] = ()
) -> list[str]:
    """Return the live statements that a verdict for which `is_edge` holds connects with a live one.

    The statements in `excluded` are left out.
    """
    # The kind of a verdict is checked first, since that is fast and rules out most verdicts.
    edges = [_other_id(verdict, id_) for verdict in known.verdicts_by_id.get(id_, ()) if is_edge(verdict)]
    others = [other for other in edges if other not in excluded]
    return [other for other in others if other in known.by_id] if others and id_ in known.by_id else []


def _other_id(verdict: Verdict, id_: str) -> str:
    return verdict.earlier_id if verdict.later_id == id_ else verdict.later_id


def _ends_of_edges(
    sides: Iterable[JudgedStatements], ids: Iterable[str], is_edge: Callable[[Verdict], bool]
) -> set[str]:
    """Return both ends of each verdict for which `is_edge` holds, of the verdicts on these statements."""
    ends: set[str] = set()
    for known in sides:
        for id_ in ids:
            if others := _connected_ids(known, id_, is_edge):
                ends.add(id_)
                ends.update(others)
    return ends


def _binding_closure(sides: Sequence[JudgedStatements], ids: Iterable[str]) -> set[str]:
    """Return these statements with all that are connected by repeating, continuing, narrowing or correcting."""
    closure = set(ids)
    pending = list(closure)
    while pending:
        id_ = pending.pop()
        for known in sides:
            others = _connected_ids(known, id_, _binds_statements, closure)
            closure.update(others)
            pending += others
    return closure


def _may_lose_effect(sides: Iterable[JudgedStatements], id_: str) -> bool:
    """Whether a later statement may decide that this one had no effect, by retracting, correcting or replacing it."""
    return any(
        _has_own_days(known.by_id[verdict.earlier_id]) or verdict.relation in _UNDOING
        for known in sides
        for verdict in _verdicts_on_live_pairs(known, id_)
        if verdict.earlier_id == id_
    )


def _has_own_days(assertion: Assertion) -> bool:
    """Whether an assertion is a plan (it begins on the day it was said, or later), or has an end like an exception."""
    is_plan = assertion.valid_from is not None and assertion.valid_from.date() >= assertion.said_at.date()
    return is_plan or assertion.valid_to is not None


def _affects_other_fact(verdict: Verdict) -> bool:
    return verdict.relation in _AFFECTING_OTHER_FACTS


def _is_about_subjects(verdict: Verdict) -> bool:
    return verdict.joins_subjects or verdict.parts_subjects


def _binds_statements(verdict: Verdict) -> bool:
    # A person's edit keeps the exceptions of the statement that it replaces.
    is_edit = verdict.relation is Relation.CHANGES and verdict.judge == PERSON
    return verdict.relation in _BINDING or is_edit


def replacement_times(
    id_: str, by_id: Mapping[str, Assertion], verdicts: Collection[Verdict], undone_ids: Container[str] = ()
) -> tuple[datetime, ...] | None:
    """Return the times at which the first replacements of a statement were said, None if it was not replaced.

    `verdicts` are all verdicts on the statement. A replacement is a change that has begun, has no end, and that the
    guard allows. Those of `undone_ids` do not count.
    """
    judged: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.earlier_id == id_ and verdict.later_id in by_id and verdict.later_id not in undone_ids:
            judged[verdict.later_id].append(verdict)
    is_exception = _has_end_or_is_exception(by_id[id_], verdicts)
    times = [
        by_id[later_id].said_at
        for later_id, on_pair in judged.items()
        if _changes_whole(deciding_verdict(on_pair))
        and _replaces(by_id[id_], by_id[later_id])
        # A repeated general statement does not replace an exception to it.
        and not (is_exception and is_undated_and_unmarked(by_id[later_id]))
    ]
    return tuple(sorted(times)[: REPLACEMENTS + 1]) or None


def need_not_be_judged(earlier: Assertion, later: Assertion, times: tuple[datetime, ...], needed: int) -> bool:
    """Whether the pair need not be judged, since `needed` replacements of the earlier statement precede the later one.

    `times` are the times of the replacements (see `replacement_times`). The later statement must have another value. It
    must not correct or retract, and must have no end. A statement with an end ("in Rome until Friday") must be judged:
    after its end the earlier value may hold again.
    """
    is_denial = later.act is not SpeechAct.STATE or later.cue is Cue.CORRECTION
    if len(times) < needed or is_denial or later.valid_to is not None:
        return False
    begins_after = times[needed - 1] < min(later.said_at, later.valid_from or later.said_at)
    return begins_after and folded(earlier.value) != folded(later.value)


def may_withdraw_in_advance(said: Assertion, retraction: Assertion) -> bool:
    """Whether a retraction may mean that the statement never held. Then the statement has replaced nothing."""
    is_after = said.act is SpeechAct.STATE is not retraction.act and said.order < retraction.order
    return is_after and (retraction.valid_from or retraction.said_at) <= (said.valid_from or said.said_at)


def _has_end_or_is_exception(said: Assertion, verdicts: Iterable[Verdict]) -> bool:
    is_judged = any(verdict.relation is Relation.EXCEPTS and verdict.later_id == said.id for verdict in verdicts)
    return is_judged or said.valid_to is not None


def _changes_whole(verdict: Verdict) -> bool:
    return verdict.relation is Relation.CHANGES and verdict.remainder is None


def _replaces(earlier: Assertion, later: Assertion) -> bool:
    is_general = later.act is SpeechAct.STATE and later.valid_to is None and not later.limited_to
    has_begun = later.valid_from is None or later.valid_from.date() < later.said_at.date()
    return (
        is_general
        and has_begun
        and refusal_reason(earlier, later, is_same_subject=earlier.slot[0] == later.slot[0]) is None
    )
