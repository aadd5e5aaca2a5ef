"""Prices of models: a table with dates that is part of the package. A profile can override single models."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from afterword.extractors.extractor import Usage

Dollars = Annotated[Decimal, Field(ge=0)]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Price:
    """The price of one model in US dollars for a million tokens. Prompt and completion have no default, not even 0.

    Without `cached_usd`, prompt tokens from the provider's cache cost the same as others. `as_of` and `source` say when
    and where the price was published.
    """

    prompt_usd: Dollars
    completion_usd: Dollars
    cached_usd: Dollars | None = None
    as_of: date | None = None
    source: str = ""

    def micro_usd(self, usage: Usage) -> int:
        """Return the cost of a usage in millionths of a dollar. Only the sum is rounded."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        cached_usd = self.prompt_usd if self.cached_usd is None else self.cached_usd
        # A price in dollars for a million tokens is the price in millionths of a dollar for one token.
        exact = (usage.prompt_tokens - cached) * self.prompt_usd + cached * cached_usd
        exact += usage.completion_tokens * self.completion_usd
        return int(exact.to_integral_value(ROUND_HALF_UP))


Prices = Mapping[str, Price]


@cache
def shipped_prices() -> Prices:
    """Return the prices that come with the package, by model name."""
    rows = tomllib.loads(files(__package__).joinpath("prices.toml").read_text(encoding="utf-8"))["prices"]
    return MappingProxyType(TypeAdapter(dict[str, Price]).validate_python(rows))
