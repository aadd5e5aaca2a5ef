"""What holds of every history: sessions in any order, grown, read twice, undone, judged in any way."""

from __future__ import annotations

import pytest

import promises
from afterword.facts.assertions import Assertion, Relation
from histories import (
    Book,
    CoherentJudge,
    CorrectingJudge,
    History,
    Told,
    histories,
    holds_for,
    moved_plans,
    pairs_of,
    statement,
)

# Sixty examples are enough to find each of the planted bugs: see test_planted_bugs.py.
by_share = pytest.mark.parametrize(
    "share", [pytest.param(1, id="ci"), pytest.param(50, id="soak", marks=pytest.mark.soak)]
)


@by_share
def test_a_session_read_twice_is_as_if_read_once(share: int) -> None:
    holds_for(60 * share, histories(), promises.read_twice_is_read_once)


@by_share
def test_a_session_that_grew_is_as_if_read_at_once(share: int) -> None:
    holds_for(60 * share, histories(), promises.grown_is_read_at_once)


@by_share
def test_the_order_of_arrival_changes_nothing(share: int) -> None:
    holds_for(60 * share, histories(), promises.any_order_is_the_order_of_saying)


@by_share
def test_an_undone_run_is_as_if_it_had_never_been(share: int) -> None:
    holds_for(60 * share, histories(), promises.undone_is_never_run)


@by_share
def test_nothing_is_lost(share: int) -> None:
    holds_for(60 * share, histories(), promises.nothing_is_lost)


@by_share
def test_no_judge_gets_past_the_guard(share: int) -> None:
    holds_for(60 * share, histories(), promises.code_guards_retirements)


@by_share
def test_spans_statuses_and_rivals_fit_each_other(share: int) -> None:
    holds_for(60 * share, histories(), promises.facts_are_sound)


@by_share
def test_standing_beside_means_nothing(share: int) -> None:
    holds_for(60 * share, histories(), promises.beside_means_nothing)


@by_share
def test_time_is_cut_as_it_was_said(share: int) -> None:
    holds_for(60 * share, histories(), promises.time_is_cut_as_said)


@by_share
def test_what_is_left_of_a_sentence_holds_on_the_days_to_which_it_is_moved(share: int) -> None:
    holds_for(120 * share, moved_plans(), lambda plans: promises.is_cut_as_defined(*plans))


@by_share
def test_the_pairs_that_are_required_make_any_order_the_same(share: int) -> None:
    """As long as equal words are one to the judge: of restatements, only the nearest are required."""
    holds_for(60 * share, histories(CoherentJudge, is_trusted=True), _any_order_with_required_pairs)


def _any_order_with_required_pairs(history: History) -> None:
    promises.any_order_is_the_order_of_saying(history, pairs_of)


@by_share
def test_corrections_do_not_depend_on_the_order_of_arrival(share: int) -> None:
    """A value that is said twice and then corrected was wrong, or was replaced, whichever statement arrived first."""
    holds_for(60 * share, histories(CorrectingJudge, is_trusted=True), _any_order_with_required_pairs)


ALDER, BIRCH = 0, 1


@pytest.mark.parametrize("last", [ALDER, BIRCH], ids=["said a third time", "changed"])
def test_an_undone_restatement_takes_no_verdict_along(last: int) -> None:
    """Said, said again, and then said a third time or changed: undoing the second leaves the first judged."""
    judge = next(judge for judge in map(CoherentJudge, range(99)) if _excludes(judge))
    sessions = [_told("a", 1, ALDER), _told("b", 3, ALDER), _told("c", 6, last)]
    book, never = Book(judge, pairs_of), Book(judge, pairs_of)
    for session in sessions:
        book.read(session, 1)
    book.undo(book.runs[1])
    for session in (sessions[0], sessions[2]):
        never.read(session, 1)
    assert book.dump() == never.dump()


def _excludes(judge: CoherentJudge) -> bool:
    verdict = judge.verdict(_said("a", 1, ALDER), _said("c", 6, BIRCH))
    return verdict is not None and verdict.relation is Relation.CHANGES


def _said(session_id: str, on: int, number: int) -> Assertion:
    return statement(number, session_id, 1, on)


def _told(session_id: str, on: int, number: int) -> Told:
    said = (_said(session_id, on, number),)
    return Told(session_id, said, said)
