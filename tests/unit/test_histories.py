"""What holds of every history: sessions in any order, grown, read twice, undone, judged in any way."""

from __future__ import annotations

import pytest
import promises
from histories import CoherentJudge, histories, holds_for

pytestmark = pytest.mark.parametrize(
    "share", [pytest.param(1, id="ci"), pytest.param(10, id="soak", marks=pytest.mark.soak)]
)


def test_a_session_read_twice_is_as_if_read_once(share: int) -> None:
    holds_for(150 * share, histories(), promises.read_twice_is_read_once)


def test_a_session_that_grew_is_as_if_read_at_once(share: int) -> None:
    holds_for(350 * share, histories(), promises.grown_is_read_at_once)


def test_the_order_of_arrival_changes_nothing(share: int) -> None:
    holds_for(350 * share, histories(), promises.any_order_is_the_order_of_saying)


def test_an_undone_run_is_as_if_it_had_never_been(share: int) -> None:
    holds_for(400 * share, histories(), promises.undone_is_never_run)


def test_nothing_is_lost(share: int) -> None:
    holds_for(250 * share, histories(), promises.nothing_is_lost)


def test_spans_statuses_rivals_and_retirements_fit_each_other(share: int) -> None:
    holds_for(250 * share, histories(), promises.facts_are_sound)


def test_standing_beside_means_nothing(share: int) -> None:
    holds_for(100 * share, histories(), promises.beside_means_nothing)


def test_time_is_cut_as_it_was_said(share: int) -> None:
    holds_for(150 * share, histories(), promises.time_is_cut_as_said)
