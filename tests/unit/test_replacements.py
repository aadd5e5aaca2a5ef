"""Statements that were replaced for good: what is not compared with them costs nothing and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations

import pytest

from afterword.extractors.slot_relation import RELATION_VERSION, relation_by_slot
from afterword.facts.assertions import Assertion, Relation, SpeechAct, Verdict
from afterword.facts.fact import Status
from afterword.facts.knowledge import Knowledge
from afterword.facts.validity import neighbourhood
from afterword.facts.validity.fact_history import facts_at
from afterword.facts.validity.neighbourhood import ids_needed_for_histories
from afterword.facts.validity.timeline import fact_histories
from afterword.pipeline import resolution
from afterword.pipeline.resolution import required_pairs
from histories import CoherentJudge, History, Told, day, dumped, every_pair, histories, holds_for, statement


def home(number: int) -> Assertion:
    """Return the statement of a new home, said on the day of that number."""
    return replace(
        statement(0, f"s{number}", 1, number), value=f"City{number}", statement=f"The user lives in City{number}."
    )


def added(known: Knowledge, new: Assertion) -> tuple[Knowledge, set[str], int]:
    """Return what is known after a statement was judged by the rules, the affected ids, and the number of pairs."""
    combined = known.revised(known.revision + 1, added=[new])
    pairs = required_pairs([new], combined)
    found = ((earlier, later, relation_by_slot(earlier, later)) for earlier, later in pairs)
    verdicts = [Verdict(a.id, b.id, related[0], related[1], RELATION_VERSION) for a, b, related in found if related]
    after = combined.revised(combined.revision, added_verdicts=verdicts)
    return after, after.affected_ids(known, [new.id]), len(pairs)


def test_the_work_of_a_change_does_not_grow_with_the_changes_before_it() -> None:
    known = Knowledge.of(0, (), ())
    _ = known.index
    costs = []
    for number in range(200):
        known, affected, pairs = added(known, home(number))
        costs.append((pairs, len(affected), len(ids_needed_for_histories(known, affected))))
    most = max(costs[20:60])
    assert max(costs[100:]) <= most
    assert most[0] <= neighbourhood.REPLACEMENTS
    assert most[2] <= 4 * neighbourhood.REPLACEMENTS
    facts = facts_at(fact_histories(known.assertions, known.verdicts), day(400))
    assert [fact.value for fact in facts if fact.status is Status.CURRENT] == ["City199"]


def test_what_was_replaced_is_still_compared_with_what_may_concern_it() -> None:
    known = Knowledge.of(0, (), ())
    for number in range(30):
        known, _, _ = added(known, home(number))
    first, new = known.by_id[home(0).id], home(50)

    def meets_first(said: Assertion) -> bool:
        return (first, said) in required_pairs([said], known.revised(99, added=[said]))

    assert not meets_first(new)
    assert meets_first(replace(new, value=first.value)), "the same value again"
    assert meets_first(replace(new, act=SpeechAct.RETRACT, value="")), "a withdrawal"
    assert meets_first(replace(new, valid_from=day(-5), valid_to=day(3))), "a statement about days when it held"
    for number in range(30, 49):
        known, _, _ = added(known, home(number))
    assert meets_first(replace(new, value=first.value)), "the same value again, after many others"
    assert meets_first(replace(new, act=SpeechAct.RETRACT, value=first.value)), "its withdrawal, after many others"


def judged_in_turn(history: History, sessions: Sequence[Told]) -> Knowledge:
    """Return what is known after the sessions arrived in this order, judged only where that is required."""
    known = Knowledge.of(0, (), ())
    for told in sessions:
        combined = known.revised(known.revision + 1, added=told.whole)
        verdicts = (history.judge.verdict(*pair) for pair in required_pairs(told.whole, combined))
        known = combined.revised(combined.revision, added_verdicts=[verdict for verdict in verdicts if verdict])
    return known


def what_is_left_out_changes_nothing(history: History) -> None:
    """Judging only what is required gives the facts that judging every pair gives, in any order of arrival."""
    everything = [said for told in history.sessions for said in told.whole]
    verdicts = [verdict for pair in every_pair(everything, ()) if (verdict := history.judge.verdict(*pair))]
    expected = dumped(fact_histories(everything, verdicts))
    for sessions in (history.sessions, history.shuffled()):
        known = judged_in_turn(history, sessions)
        assert dumped(fact_histories(known.assertions, known.verdicts)) == expected


def in_one_slot(history: History) -> History:
    sessions = (replace(told, whole=tuple(map(_at_home, told.whole))) for told in history.sessions)
    return replace(history, sessions=tuple(sessions))


def _at_home(said: Assertion) -> Assertion:
    return replace(said, subject="user", attribute="home", limited_to=None)


CHANGING = histories(CoherentJudge, is_trusted=True).map(in_one_slot)


@pytest.mark.parametrize("examples", [60, pytest.param(1200, marks=pytest.mark.soak)])
def test_pairs_that_are_not_required_change_nothing(examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolution, "REPLACEMENTS", 1)
    holds_for(examples, CHANGING, what_is_left_out_changes_nothing)


def test_days_set_apart_from_a_replaced_value_stay_apart_when_it_is_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolution, "REPLACEMENTS", 1)
    first, replacing, again = (_at_home(statement(number, f"s{on}", 1, on)) for number, on in ((1, 0), (0, 1), (1, 3)))
    plan = replace(_at_home(statement(0, "s2", 1, 2)), valid_from=day(7), valid_to=day(13))
    judge = next(judge for judge in map(CoherentJudge, range(100)) if _changes(judge, first, replacing, plan))
    any_arrival_is_enough(judge, first, replacing, plan, again)


@pytest.mark.parametrize(("said_on", "since"), [(5, -4), (1, None)], ids=["a day before it", "its own day"])
def test_a_value_whose_replacement_is_withdrawn_from_its_beginning_is_compared_with_the_next_change(
    said_on: int, since: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolution, "REPLACEMENTS", 1)
    first, replacing = (_at_home(statement(number, f"s{number}", 1, number)) for number in (0, 1))
    next_ = replace(_at_home(statement(0, "s3", 1, 3)), value="elm grove")
    withdrawal = replace(
        _at_home(statement(1, "t", 1, said_on)),
        act=SpeechAct.RETRACT,
        valid_from=None if since is None else day(since),
    )
    judge = next(judge for judge in map(CoherentJudge, range(100)) if _changes(judge, first, replacing, next_))
    any_arrival_is_enough(judge, first, replacing, next_, withdrawal)


def any_arrival_is_enough(judge: CoherentJudge, *everything: Assertion) -> None:
    """Judging only what is required gives the facts that judging every pair gives, in every order of arrival."""
    verdicts = [verdict for pair in every_pair(everything, ()) if (verdict := judge.verdict(*pair))]
    expected = dumped(fact_histories(everything, verdicts))
    for order in permutations(Told(said.session_id or "", (said,), ()) for said in everything):
        known = judged_in_turn(History(order, judge, ()), order)
        assert dumped(fact_histories(known.assertions, known.verdicts)) == expected


def _changes(judge: CoherentJudge, first: Assertion, *later: Assertion) -> bool:
    """Whether each later statement changes the first one."""
    verdicts = [judge.verdict(first, said) for said in later]
    return all(verdict is not None and verdict.relation is Relation.CHANGES for verdict in verdicts)


def ends_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """A stay of a week counts as a replacement for good."""
    may_replace = neighbourhood._replaces
    patch.setattr(
        neighbourhood, "_replaces", lambda earlier, later: may_replace(earlier, replace(later, valid_to=None))
    )


def beginnings_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(resolution, "need_not_be_judged", lambda earlier, later, starts, count: later.value != earlier.value)


def any_verdict_replaces(patch: pytest.MonkeyPatch) -> None:
    def changed(verdicts: Sequence[Verdict]) -> Verdict:
        return replace(next(iter(verdicts)), relation=Relation.CHANGES)

    patch.setattr(neighbourhood, "deciding_verdict", changed)


@pytest.mark.parametrize("plant", [ends_are_ignored, beginnings_are_ignored, any_verdict_replaces])
def test_leaving_out_too_many_pairs_is_noticed(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolution, "REPLACEMENTS", 1)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        holds_for(800, CHANGING, what_is_left_out_changes_nothing, is_fixed=True)
