"""Which facts a query is about."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.store.assertions import OWNER, Kind
from afterword.store.facts import Fact, Status
from afterword.store.ranking import rank, terms
from afterword.store.scopes import Scope

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def fact(statement: str, subject: str = OWNER, attribute: str = "note", value: str = "") -> Fact:
    return Fact(
        id=statement,
        scope=Scope.user("lena"),
        kind=Kind.ENTITY,
        subject=subject,
        attribute=attribute,
        value=value,
        statement=statement,
        status=Status.CURRENT,
        said_at=NOON,
        valid_from=NOON,
        valid_to=None,
        support=1,
        evidence=(),
        assertion_ids=(statement,),
    )


FACTS = [
    fact("The user has a peanut allergy.", attribute="allergy", value="peanuts"),
    fact("The user works as an architect in Graz.", attribute="job", value="architect"),
    fact("Mara moved to Lyon.", subject="Mara", attribute="home", value="Lyon"),
    fact("The user reads Café Zürich reviews."),
    fact("ユーザーは東京都に住んでいます。"),
]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("Am I allergic to anything? My allergies?", 0),
        ("peanut butter", 0),
        ("Where do ARCHITECTS work?", 1),
        ("where does mara live", 2),
        ("cafe zurich", 3),
        ("東京に何がありますか", 4),
    ],
)
def test_the_fact_that_shares_the_words_comes_first(query: str, best: int) -> None:
    assert rank(query, FACTS)[0][0] == FACTS[best]


@pytest.mark.parametrize("query", ["", "  ", "quantum chromodynamics", "what is the user and who am I", "?!"])
def test_what_shares_no_words_is_not_found(query: str) -> None:
    """Words that stand in every question are no reason to call a fact relevant."""
    assert rank(query, FACTS) == []


def test_rare_words_weigh_more_than_common_ones() -> None:
    facts = [fact(f"Team meeting number {number} is on Monday.") for number in range(9)] + [fact("The quasar meeting.")]
    assert rank("quasar meeting", facts)[0][0] == facts[-1]


def test_a_short_fact_about_it_comes_before_a_long_one_that_mentions_it() -> None:
    long = fact("Among plants, rivers, bridges, towns, hills and trains the list also mentions tea somewhere.")
    short = fact("Lena drinks tea.")
    assert [one for one, _ in rank("tea", [long, short])] == [short, long]


def test_no_facts_give_no_ranking() -> None:
    assert rank("tea", []) == []


@given(st.text(), st.lists(st.text(), max_size=6))
def test_any_text_can_be_ranked(query: str, statements: list[str]) -> None:
    ranked = rank(query, [fact(statement) for statement in statements])
    scores = [score for _, score in ranked]
    assert all(score > 0 for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_terms_are_stems_without_case_accents_and_stop_words() -> None:
    assert terms("She's RUNNING the Écoles, please!") == ["run", "ecol"]
