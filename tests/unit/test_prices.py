"""What tokens cost, to the millionth of a dollar, and where the prices come from."""

from __future__ import annotations

import tomllib
from datetime import date
from decimal import Decimal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from afterword.extractors.extractor import Usage
from afterword.extractors.model.prices import Price, shipped_prices
from afterword.pipeline.budget import Budget, CostTracker, dollars
from afterword.store.costs import Spending

COUNTS = st.integers(0, 10_000_000)


def test_every_shipped_price_says_since_when_and_from_where() -> None:
    for name, price in shipped_prices().items():
        assert price.as_of is not None, name
        assert date(2026, 1, 1) <= price.as_of
        assert price.source, name
        # Vectors are no completion, and cost none.
        assert name.startswith("text-embedding") or 0 < price.prompt_usd < price.completion_usd, name
        assert price.prompt_usd > 0, name
        assert price.cached_usd is None or 0 < price.cached_usd < price.prompt_usd, name


def test_the_table_of_the_configs_is_the_one_that_comes_along(repository: Path) -> None:
    rows = tomllib.loads((repository / "configs" / "prices.toml").read_text(encoding="utf-8"))["prices"]
    assert TypeAdapter(dict[str, Price]).validate_python(rows) == shipped_prices()


def test_a_million_tokens_cost_what_the_table_says() -> None:
    price = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))
    assert price.micro_usd(Usage(1, 1_000_000, 0)) == 150_000
    assert price.micro_usd(Usage(1, 0, 1_000_000)) == 600_000
    assert price.micro_usd(Usage(1, 1_000_000, 0, cached_tokens=1_000_000)) == 75_000
    assert price.micro_usd(Usage(1, 1_000, 100, cached_tokens=400)) == 180


def test_without_a_cached_price_the_cache_saves_nothing() -> None:
    price = Price(Decimal(2), Decimal(8))
    assert price.micro_usd(Usage(1, 500, 0, cached_tokens=500)) == price.micro_usd(Usage(1, 500, 0)) == 1_000


@given(COUNTS, COUNTS, COUNTS)
def test_money_is_never_more_than_a_rounding_away_from_exact(prompt: int, completion: int, cached: int) -> None:
    price = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))
    usage = Usage(1, prompt, completion, min(cached, prompt))
    exact = (prompt - usage.cached_tokens) * price.prompt_usd + completion * price.completion_usd
    exact += usage.cached_tokens * Decimal("0.075")
    assert abs(price.micro_usd(usage) - exact) <= Decimal("0.5")


def test_an_unknown_model_has_no_price_and_a_local_one_the_price_0() -> None:
    tracker = CostTracker(Budget(prices={"local": Price(Decimal(0), Decimal(0))}))
    usage = Usage(2, 1_000, 100)
    assert tracker.cost_of("local", usage).usd == 0
    assert tracker.cost_of("nobody-knows", usage).usd is None
    both = tracker.cost_of("local", usage) + tracker.cost_of("nobody-knows", usage)
    assert (both.micro_usd, both.unpriced_calls, both.tokens) == (0, 2, 2_200)


def test_what_cost_nothing_is_known_to_cost_nothing() -> None:
    assert Spending().usd == 0


def test_dollars_are_shown_as_people_read_them() -> None:
    assert dollars(Decimal(2)) == "$2.00"
    assert dollars(Decimal("0.00123")) == "$0.0012"
    assert dollars(Decimal("1234.5678")) == "$1,234.57"
