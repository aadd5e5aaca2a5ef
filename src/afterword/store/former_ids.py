"""Ids that facts had before: of an assertion that no longer counts, the fact that says the same now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlmodel import Session, or_, select

from afterword.facts.assertions import Assertion, Relation
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.facts.words import folded
from afterword.privacy.blanking import mentions_phrase
from afterword.store.scope_rows import scope_key
from afterword.store.tables import VerdictRow


def facts_continuing(
    transaction: Session, scope: Scope, former: Assertion, facts: Sequence[Fact], known: Sequence[Assertion]
) -> list[Fact]:
    """Return the fact that says now what an assertion said that no longer counts; an empty list if none does.

    `facts` and `known` are what counts in the scope. A session that was read again says it in the same slot or in the
    same words; else it is looked for among what it was judged to repeat, and among statements of its slot and value.
    """
    fact_by_member = {id_: fact for fact in facts for id_ in fact.assertion_ids}
    read_again = [said for said in known if said.session_id and said.session_id == former.session_id]
    successors = [said for said in read_again if _continues(former, said)]
    ids = [said.id for said in sorted(successors, key=lambda said: -_match(former, said))]
    ids += _repeated_ids(transaction, scope, former)
    ids += [said.id for said in known if said.slot == former.slot and folded(said.value) == folded(former.value)]
    return [fact_by_member[id_] for id_ in ids if id_ in fact_by_member][:1]


def _continues(former: Assertion, said: Assertion) -> bool:
    """Whether another reading of a session says what a former one said."""
    if said.act is not former.act:
        return False
    is_same_slot, overlaps = said.slot == former.slot, _overlaps(former, said)
    return (is_same_slot and (overlaps or _is_same_value(former, said))) or (overlaps and _is_same_value(former, said))


def _match(former: Assertion, said: Assertion) -> int:
    return 4 * _is_same_value(former, said) + 2 * (said.slot == former.slot) + _overlaps(former, said)


def _is_same_value(one: Assertion, other: Assertion) -> bool:
    if folded(one.value) == folded(other.value):
        return True
    return bool(one.value and other.value) and (
        mentions_phrase(one.value, other.value) or mentions_phrase(other.value, one.value)
    )


def _overlaps(one: Assertion, other: Assertion) -> bool:
    """Whether two assertions rest on some of the same words of a turn."""
    return any(
        mine.turn is not None
        and (mine.session_id, mine.turn) == (theirs.session_id, theirs.turn)
        and (mine.start or 0) < (theirs.start or 0) + len(theirs.quote)
        and (theirs.start or 0) < (mine.start or 0) + len(mine.quote)
        for mine in one.evidence
        for theirs in other.evidence
    )


def _repeated_ids(transaction: Session, scope: Scope, former: Assertion) -> Iterable[str]:
    """Return the ids of the assertions that were judged to say the same."""
    query = select(VerdictRow.earlier_id, VerdictRow.later_id).where(
        VerdictRow.scope_id == scope_key(transaction, scope),
        VerdictRow.relation == str(Relation.SAME),
        or_(VerdictRow.earlier_id == former.id, VerdictRow.later_id == former.id),
    )
    return [later if earlier == former.id else earlier for earlier, later in transaction.exec(query)]
