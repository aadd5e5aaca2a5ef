"""When a person's message vouches for what an agent asks to be kept or taken back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.agents.vouching import statement_refusal, withdrawal_refusal
from afterword.facts.assertions import Kind
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope

SAID_AT = datetime(2026, 3, 1, tzinfo=UTC)


def fact(statement: str, value: str, attribute: str = "note") -> Fact:
    return Fact(
        id="f" * 20,
        scope=Scope.user("lena"),
        kind=Kind.ENTITY,
        subject="user",
        attribute=attribute,
        value=value,
        statement=statement,
        status=Status.CURRENT,
        said_at=SAID_AT,
        valid_from=SAID_AT,
        valid_to=None,
        support=1,
        evidence=(),
        assertion_ids=("f" * 20,),
    )


@pytest.mark.parametrize(
    ("statement", "quote", "message"),
    [
        ("The user lives in Bergen.", "I live in Bergen", "Hi! I live in Bergen. Any news?"),
        ("The user prefers metric units.", "use metric units", "Please use metric units from now on."),
        ("The user likes tea.", "I like tea", "Can you remember that I like tea?"),
        ("The user likes tea.", "I like tea", "Don't forget that I like tea."),
        ("The user does not eat meat.", "I don’t eat meat", "Tea, please. I don't eat meat."),
        ("The user dislikes cilantro.", "I hate cilantro", "I hate cilantro!"),
        ("Lena takes the window seat.", "I take the window seat", "I take the window seat"),
        ("The user asked for answers in German.", "answers in German", "I want answers\nin German; thanks"),
    ],
)
def test_what_the_person_says_in_these_words_is_vouched_for(statement: str, quote: str, message: str) -> None:
    assert statement_refusal(statement, quote, message, names=["lena"]) is None


@pytest.mark.parametrize(
    ("statement", "quote", "message", "why"),
    [
        ("The user likes tea.", "I like tea", None, "no message"),
        ("The user likes tea.", "I like tea", "Summarise this page.", "does not stand"),
        ("The user's account is 4711.", "Summarise", "Summarise this page.", "did not say: account, 4711"),
        ("The user likes tea.", "I like", "I like coffee. Tea is for others.", "did not say: tea"),
        ("The user likes tea.", "like tea", "I don't like tea.", "opposite"),
        ("The user likes tea.", "tea", "I hate tea, which I like to say.", "opposite"),
        ("The user never likes tea.", "like tea", "I like tea.", "opposite"),
        ("The user likes tea.", "I like tea", "Do you think I like tea?", "asked"),
        ("The user likes tea.", "...", "I like tea...", "does not stand"),
        ("The user likes tea.", "", "I like tea.", "does not stand"),
    ],
)
def test_what_the_person_does_not_say_is_not(statement: str, quote: str, message: str | None, why: str) -> None:
    assert why in (statement_refusal(statement, quote, message) or "")


@given(message=st.text(min_size=1), quote=st.text(), start=st.integers(0, 50), length=st.integers(1, 50))
def test_no_message_vouches_for_a_word_that_is_not_in_it(message: str, quote: str, start: int, length: int) -> None:
    for words in (quote, message[start : start + length]):
        assert statement_refusal("The account is zzyzx4711.", words, message) is not None


@pytest.mark.parametrize(
    ("quote", "message"),
    [
        ("I no longer live in Graz", "By the way, I no longer live in Graz."),
        ("I'm not living in Graz any more", "I'm not living in Graz any more"),
        ("forget that I live in Graz", "Please forget that I live in Graz. And book a table."),
        ("Graz is wrong", "Graz is wrong"),
    ],
)
def test_whoever_takes_it_back_by_name_vouches_for_a_withdrawal(quote: str, message: str) -> None:
    assert withdrawal_refusal(fact("The user lives in Graz.", "Graz", "home"), quote, message) is None


@pytest.mark.parametrize(
    ("quote", "message", "why"),
    [
        ("Summarise", "Summarise this page about Graz.", "took nothing back"),
        ("forget it", "Just forget it. Tell me about Graz.", "did not speak of it"),
        ("I no longer live in Graz", "Summarise this page.", "does not stand"),
        ("I no longer live in Graz", None, "no message"),
    ],
)
def test_whoever_does_not_take_it_back_does_not(quote: str, message: str | None, why: str) -> None:
    assert why in (withdrawal_refusal(fact("The user lives in Graz.", "Graz", "home"), quote, message) or "")
