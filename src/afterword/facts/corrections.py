"""A person's corrections of a fact: which statements they concern beside it, and how long they hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from afterword.facts.assertions import PERSON, Assertion, Relation, SpeechAct
from afterword.facts.fact import ENDED_STATUSES, Fact, Status
from afterword.facts.knowledge import Knowledge
from afterword.facts.validity.fact_history import facts_at


def judges_by_rival_id(
    known: Knowledge, fact: Fact, *, is_now: bool, has_same_slot: bool, judge: str
) -> dict[str, str]:
    """Return the ids of the statements that a person's new words about a fact contradict, each with the judge to name.

    These are always the person's earlier corrections of the fact. If the new words have the slot of the fact
    (`has_same_slot`), the statements that contest it are added. If the person says what holds now (`is_now`) and the
    fact has ended, the statements that replaced it are added: those that a person entered, and with `has_same_slot`
    also the others that name no end. `judge` is the judge to name for statements that no person entered.
    """
    pairs = known.judged_pairs(fact.assertion_ids)
    judges = dict.fromkeys(fact.contested_by if has_same_slot else (), judge)
    is_replaced = is_now and fact.status in ENDED_STATUSES
    replaced = [*fact.assertion_ids]
    for earlier in replaced:  # grows by replacements
        for later, relation in pairs.retirements.get(earlier, ()):
            is_edit = pairs.is_edit(earlier, later)
            is_correction = is_edit and relation is Relation.CORRECTS
            is_replacement = is_replaced and _replaces_for_good(
                known.by_id[later], relation, is_edit=is_edit, has_same_slot=has_same_slot
            )
            if later not in replaced and (is_correction or is_replacement):
                replaced.append(later)
                judges[later] = PERSON if is_edit else judge
    return judges


def _replaces_for_good(later: Assertion, relation: Relation, *, is_edit: bool, has_same_slot: bool) -> bool:
    """Return whether a later assertion takes the place of an earlier one, and not only until a day that it names.

    Of the assertions that are no person's edit, only those that concern the same slot as new words count.
    """
    is_lasting = is_edit or (has_same_slot and later.valid_to is None)
    return is_lasting and relation in (Relation.CHANGES, Relation.CORRECTS) and later.act is SpeechAct.STATE


def corrected_statement_ids(known: Knowledge, fact: Fact) -> list[str]:
    """Return the ids of the statements that a fact has itself corrected for a person.

    A correction of the fact must correct these statements too. Otherwise they would hold again, since a correction that
    is itself corrected does not count.
    """
    pairs = known.judged_pairs(fact.assertion_ids)
    return [
        earlier
        for earlier, retirements in pairs.retirements.items()
        for later, relation in retirements
        if later in fact.assertion_ids and relation is Relation.CORRECTS and pairs.is_edit(earlier, later)
    ]


def with_end_of_correction(known: Knowledge, fact: Fact, at: datetime) -> Fact:
    """Return a fact with the end of the fact that a person's latest correction put in its place.

    A corrected fact never held, so it has no end of its own. A fact without corrections is returned as it is.
    """
    pairs = known.judged_pairs(fact.assertion_ids)
    last = max(pairs.position[member] for member in fact.assertion_ids)
    corrections = [
        later
        for member in fact.assertion_ids
        for later, relation in pairs.retirements.get(member, ())
        if relation is Relation.CORRECTS and pairs.is_edit(member, later) and pairs.position[later] > last
    ]
    if not corrections:
        return fact
    latest = facts_at(known.histories([max(corrections, key=pairs.position.__getitem__)]), at)
    standing = with_end_of_correction(known, latest[0], at) if latest else fact
    is_former = standing.status in (Status.SUPERSEDED, Status.EXPIRED)
    return replace(fact, valid_to=standing.valid_to if is_former else None)
