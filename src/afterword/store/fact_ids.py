"""Find facts by the id of one of their assertions, by the beginning of such an id, or by a former id."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, false
from sqlmodel import Session, and_, col, or_, select

from afterword.errors import NotFound
from afterword.facts.assertions import Assertion, Evidence, Relation
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.facts.words import folded
from afterword.privacy.blanking import mentions_phrase
from afterword.store import lookup
from afterword.store.scope_rows import scope_key, scope_of_row
from afterword.store.tables import AssertionRow, EvidenceRow, FactAssertionRow, FactRow, ScopeRow, VerdictRow

CANDIDATES_SHOWN = 5


def read_fact(transaction: Session, scope: Scope, id_or_prefix: str, *, at: datetime) -> Fact:
    """Return a fact by the id of any of its assertions, or by the beginning of such an id.

    The id of an assertion that is no longer live, for example because its session was read again, finds the fact that
    says the same now. Raises `NotFound` if the scope has no such fact, or several; then the message names some of them.
    """
    if not id_or_prefix:
        raise NotFound(f"no fact {id_or_prefix!r} in {scope}: see `afterword facts --all`")
    facts = lookup.read_facts_by_id(
        transaction, scope, _fact_ids_by_assertion_id(transaction, scope, id_or_prefix), at=at
    )
    # Some databases ignore blanks and signs when they compare texts, so the range may hold ids without the prefix.
    matching = [fact for fact in facts if any(name.startswith(id_or_prefix) for name in fact.assertion_ids)]
    if not matching:
        former = _find_assertion(transaction, scope, id_or_prefix)
        matching = _facts_saying_the_same(transaction, scope, former, at=at) if former else []
    if len(matching) != 1:
        hint = shared_prefix_hint([fact.id for fact in matching]) if matching else "see `afterword facts --all`"
        raise NotFound(f"no {'single ' if matching else ''}fact {id_or_prefix!r} in {scope}: {hint}")
    return matching[0]


def _fact_ids_by_assertion_id(transaction: Session, scope: Scope, id_or_prefix: str) -> list[str]:
    """Return the ids of the facts that have an assertion whose id is or begins with this one."""
    query = (
        select(FactAssertionRow.fact_id)
        .join(FactRow, col(FactRow.id) == col(FactAssertionRow.fact_id))
        .where(
            lookup.fact_of_scope_condition(scope_key(transaction, scope)),
            _has_prefix(FactAssertionRow.assertion_id, id_or_prefix),
        )
    )
    return list(transaction.exec(query.distinct()))


def _has_prefix(column: str, prefix: str) -> ColumnElement[bool]:
    """Return the condition that an id begins with `prefix`. No id begins with an empty one."""
    # Ids are hexadecimal, so those that begin with the prefix lie before the prefix with a "g". An index finds them.
    is_in_range = and_(col(column) >= prefix, col(column) < f"{prefix}g")
    return is_in_range if prefix else false()


def shared_prefix_hint(ids: Sequence[str]) -> str:
    """Return the hint for a prefix that is not unique. It shows the first of the ids that begin with the prefix."""
    more = f" and {len(ids) - CANDIDATES_SHOWN} more" if len(ids) > CANDIDATES_SHOWN else ""
    shown = ", ".join(id_[:8] for id_ in ids[:CANDIDATES_SHOWN])
    return f"{len(ids)} ids begin with it ({shown}{more}); give more of the id"


def _find_assertion(transaction: Session, scope: Scope, id_or_prefix: str) -> Assertion | None:
    """Return the assertion of a scope, live or not, whose id is or begins with this one; None unless there is one."""
    has_prefix = col(AssertionRow.id).startswith(id_or_prefix, autoescape=True)
    query = select(AssertionRow.id).where(AssertionRow.scope_id == scope_key(transaction, scope), has_prefix)
    ids = list(transaction.exec(query.limit(2))) if id_or_prefix else []
    return lookup.assertions_by_id(transaction, scope, ids)[ids[0]] if len(ids) == 1 else None


def scopes_with_statement(transaction: Session, id_or_prefix: str) -> list[Scope]:
    """Return the scopes that have a statement whose id is or begins with this one."""
    ids = select(AssertionRow.scope_id).where(_has_prefix(AssertionRow.id, id_or_prefix))
    query = select(ScopeRow).where(col(ScopeRow.id).in_(ids)).order_by(col(ScopeRow.id))
    return [scope_of_row(row) for row in transaction.exec(query)]


def _facts_saying_the_same(transaction: Session, scope: Scope, former: Assertion, *, at: datetime) -> list[Fact]:
    """Return a list with the live fact that says the same as an assertion that is no longer live, or an empty list.

    The fact is looked for among the assertions of the same session, as it was read last, then among those that were
    judged to say the same as the former assertion, and then among those with the same slot and value.
    """
    facts, known = lookup.read_facts(transaction, scope, at=at), lookup.read_knowledge(transaction, scope).assertions
    fact_by_member = {id_: fact for fact in facts for id_ in fact.assertion_ids}
    read_again = [said for said in known if said.session_id and said.session_id == former.session_id]
    # An assertion of a later reading says the same if two of the three criteria are met.
    compared = [(_matching_criteria(former, said), said) for said in read_again if said.act is former.act]
    compared.sort(key=lambda pair: pair[0], reverse=True)
    ids = [said.id for matches, said in compared if sum(matches) > 1]
    judged_same = select(VerdictRow.earlier_id, VerdictRow.later_id).where(
        VerdictRow.scope_id == scope_key(transaction, scope),
        VerdictRow.relation == str(Relation.SAME),
        or_(VerdictRow.earlier_id == former.id, VerdictRow.later_id == former.id),
    )
    ids += [later if earlier == former.id else earlier for earlier, later in transaction.exec(judged_same)]
    ids += [said.id for said in known if said.slot == former.slot and folded(said.value) == folded(former.value)]
    return [fact_by_member[id_] for id_ in ids if id_ in fact_by_member][:1]


def _matching_criteria(former: Assertion, other: Assertion) -> tuple[bool, bool, bool]:
    """Return three criteria: whether two assertions have matching values, the same slot, and overlapping quotes."""
    is_same_value = folded(former.value) == folded(other.value) or is_one_value_within_other(former.value, other.value)
    rests_on_same_words = any(
        mine.turn is not None
        and (mine.session_id, mine.turn) == (theirs.session_id, theirs.turn)
        and have_overlapping_quotes(mine, theirs)
        for mine in former.evidence
        for theirs in other.evidence
    )
    return is_same_value, former.slot == other.slot, rests_on_same_words


def is_one_value_within_other(first: str, second: str) -> bool:
    """Return whether one of two values contains the other as a phrase."""
    return bool(first) and bool(second) and (mentions_phrase(first, second) or mentions_phrase(second, first))


def have_overlapping_quotes(first: Evidence | EvidenceRow, second: Evidence | EvidenceRow) -> bool:
    """Return whether two quotes of one turn have some words in common."""
    first_start, second_start = first.start or 0, second.start or 0
    return first_start < second_start + len(second.quote) and second_start < first_start + len(first.quote)
