"""Each bug that is planted in the timeline or in the choice of pairs is found by a property test.

Without a bug, test_histories.py runs the same tests on the same examples.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import promises
from afterword.facts.assertions import RETIRING_RELATIONS, Assertion, Relation, SpeechAct
from afterword.facts.fact import Status
from afterword.facts.validity import judged_pairs, periods, stated_intervals, timeline
from afterword.facts.validity.periods import ValidityPeriod
from histories import History, Pair, every_pair, histories, holds_for, moved_plans

Plant = Callable[[pytest.MonkeyPatch], None]
Check = Callable[[History], None]
EXAMPLES = 60


def arrival_decides(patch: pytest.MonkeyPatch) -> None:
    """The order of arrival stands in for the order of saying."""

    def in_arrival_order(values: Iterable[Any], **how: Any) -> list[Any]:
        values = list(values)
        return values if values and isinstance(values[0], Assertion) else builtins.sorted(values, **how)

    patch.setattr(judged_pairs, "sorted", in_arrival_order, raising=False)


def a_correction_is_a_change(patch: pytest.MonkeyPatch) -> None:
    """What was wrong from the start holds until it was corrected."""
    patch.setattr(timeline, "_corrected_by", lambda _: {})


def a_retraction_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judged_pairs, "RETIRING_RELATIONS", RETIRING_RELATIONS - {Relation.RETRACTS})


def a_retraction_brings_the_former_value_back(patch: pytest.MonkeyPatch) -> None:
    """What is withdrawn counts as never said."""
    corrected_by = timeline._corrected_by

    def with_retracted(pairs: Any) -> dict[str, str]:
        retracted = {
            earlier: later
            for earlier, retirements in pairs.retirements.items()
            for later, relation in retirements
            if relation is Relation.RETRACTS
        }
        return retracted | corrected_by(pairs)

    patch.setattr(timeline, "_corrected_by", with_retracted)


def the_guard_sleeps(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judged_pairs, "refusal_reason", lambda earlier, later, *, is_same_subject: None)


def the_last_instant_is_outside(patch: pytest.MonkeyPatch) -> None:
    def holds_at(span: ValidityPeriod, at: Any) -> bool:
        return bool(span.start <= at and (span.end is None or at < span.end))

    patch.setattr(ValidityPeriod, "holds_at", holds_at)


def an_interval_has_no_end(patch: pytest.MonkeyPatch) -> None:
    """What was said for a while takes the time after it as well."""
    subtract = periods.periods_outside

    def endless(spans: list[ValidityPeriod], interval: Any, ending: Status, by: str) -> list[ValidityPeriod]:
        return subtract(spans, (interval[0], None), ending, by)

    patch.setattr(timeline, "periods_outside", endless)


def the_past_retires(patch: pytest.MonkeyPatch) -> None:
    """What was said to hold from some day on takes over when it was said."""
    intervals = stated_intervals.stated_intervals

    def since_saying(pairs: Any, corrected_by: Any) -> Any:
        return {name: (pairs.by_id[name].said_at, end) for name, (_, end) in intervals(pairs, corrected_by).items()}

    patch.setattr(timeline, "stated_intervals", since_saying)


def restatements_are_dropped(patch: pytest.MonkeyPatch) -> None:
    """Only the first of those who say the same is kept."""
    derive = timeline._history

    def first_only(pairs: Any, members: list[Assertion], *others: Any) -> Any:
        return derive(pairs, members[:1], *others)

    patch.setattr(timeline, "_history", first_only)


def the_erased_is_shown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judged_pairs.JudgedPairs, "hidden_ids", lambda _: frozenset())


def a_refusal_is_silent(patch: pytest.MonkeyPatch) -> None:
    """Nobody hears that a retirement was refused: a contest names no rival."""
    derive = timeline._history

    def quiet(*arguments: Any) -> Any:
        return replace(derive(*arguments), contested_by=())

    patch.setattr(timeline, "_history", quiet)


PLANTED: list[tuple[Plant, Check]] = [
    (arrival_decides, promises.any_order_is_the_order_of_saying),
    (arrival_decides, promises.grown_is_read_at_once),
    (arrival_decides, promises.undone_is_never_run),
    (a_correction_is_a_change, promises.time_is_cut_as_said),
    (a_retraction_is_ignored, promises.time_is_cut_as_said),
    (a_retraction_brings_the_former_value_back, promises.time_is_cut_as_said),
    (the_guard_sleeps, promises.code_guards_retirements),
    (the_guard_sleeps, promises.time_is_cut_as_said),
    (the_last_instant_is_outside, promises.facts_are_sound),
    (an_interval_has_no_end, promises.time_is_cut_as_said),
    (the_past_retires, promises.time_is_cut_as_said),
    (restatements_are_dropped, promises.nothing_is_lost),
    (the_erased_is_shown, promises.time_is_cut_as_said),
    (a_refusal_is_silent, promises.code_guards_retirements),
]


@pytest.mark.parametrize(
    ("plant", "check"),
    [pytest.param(plant, check, id=f"{plant.__name__}-{check.__name__}") for plant, check in PLANTED],
)
def test_a_planted_bug_is_found(plant: Plant, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        holds_for(EXAMPLES, histories(), check, is_fixed=True)


def test_a_rest_that_keeps_its_days_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the days of a sentence change, the rest of it would hold on the former ones."""
    monkeypatch.setattr(stated_intervals, "leaves_day_out", lambda *_: False)
    with pytest.raises(AssertionError):
        holds_for(EXAMPLES, moved_plans(), lambda plans: promises.is_cut_as_defined(*plans), is_fixed=True)


def only_what_stands(new: Sequence[Assertion], known: Sequence[Assertion]) -> list[Pair]:
    """Judge against the latest of each slot alone, as memories do that overwrite."""
    latest = {said.slot: said for said in sorted(known, key=lambda said: said.order)}
    return every_pair(new, list(latest.values()))


def no_retractions_kept(new: Sequence[Assertion], known: Sequence[Assertion]) -> list[Pair]:
    """Forget a retraction once it has been applied."""
    return every_pair(new, [said for said in known if said.act is SpeechAct.STATE])


@pytest.mark.parametrize("pairing", [only_what_stands, no_retractions_kept])
@pytest.mark.parametrize("check", [promises.any_order_is_the_order_of_saying, promises.undone_is_never_run])
def test_judging_too_few_pairs_is_found(pairing: Any, check: Callable[..., None]) -> None:
    def checked(history: History) -> None:
        check(history, pairing)

    with pytest.raises(AssertionError):
        holds_for(EXAMPLES, histories(), checked, is_fixed=True)
