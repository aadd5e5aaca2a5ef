"""Former names keep working, and say once for each place of use what to call instead."""

from __future__ import annotations

import pytest

from afterword.agents.memory_content import RecallOutcome, RecallResult


def test_the_matches_of_a_query_have_their_former_name() -> None:
    result = RecallResult(RecallOutcome.NOTHING_STORED)
    with pytest.warns(DeprecationWarning, match=r"RecallResult\.matches.* release 0\.3") as warnings:
        former = result.found
    assert former is result.matches
    assert [warning.filename for warning in warnings] == [__file__]
