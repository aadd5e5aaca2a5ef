"""Prices of models: a dated table that is shipped with the package. A profile can override single models."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from afterword.extractors.extractor import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. A price of 0 must be set; it is never a default.

    Without `cached_usd`, prompt tokens from the provider's cache cost the same as others. `as_of` and `source` say when
    and where the price was published.
    """

    prompt_usd: Decimal
    completion_usd: Decimal
    cached_usd: Decimal | None = None
    as_of: date | None = None
    source: str = ""

    def micro_usd(self, usage: Usage) -> int:
        """Return the cost of a usage in millionths of a dollar, rounded once."""
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
    return MappingProxyType({name: _price(row) for name, row in rows.items()})


def _price(row: Mapping[str, str | date]) -> Price:
    usd = {name: Decimal(str(value)) for name, value in row.items() if name.endswith("_usd")}
    as_of = row["as_of"]
    if not isinstance(as_of, date):
        raise TypeError(f"prices.toml: as_of = {as_of!r} is not a date")
    return Price(**usd, as_of=as_of, source=str(row["source"]))
