"""Who extracts and who judges, as configured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.model.prices import Price, shipped
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.pipeline.budget import Budget, Purse
from afterword.settings import ModelOptions, Settings, modes_path


@dataclass(frozen=True, slots=True)
class Workers:
    """An extractor and the judge that goes with it."""

    extractor: Extractor
    judge: Judge


@asynccontextmanager
async def working(kind: str, options: ModelOptions) -> AsyncIterator[Workers]:
    """Open the extractor and the judge of a kind, `rules` or `model`; a model's connections are closed at the end."""
    if kind == "rules":
        yield Workers(RulesExtractor(), RulesJudge())
        return
    async with asking(options) as client:
        yield Workers(ModelExtractor(client, language=options.statement_language), ModelJudge(client))


def asking(options: ModelOptions) -> ModelClient:
    """Return a client of the configured model; use it with `async with`."""
    return ModelClient(model_settings(options))


def model_settings(options: ModelOptions) -> ModelSettings:
    """Return what a client of the configured model needs. Raises `EndpointMisconfigured` where none could use it."""
    return ModelSettings(
        model=options.name,
        base_url=options.base_url,
        api_key=options.api_key.get_secret_value() if options.api_key else None,
        timeout_s=options.timeout_s,
        max_retries=options.max_retries,
        mode=options.mode,
        max_completion_tokens=options.max_completion_tokens,
        modes_file=modes_path(),
    )


def purse(configured: Settings, kind: str) -> Purse:
    """Return the purse of one command: the configured budget, at the shipped prices and those of the profile.

    Raises `PriceUnknown` where a budget in dollars is set and the price of the model is not known.
    """
    own = {name: Price(**row.model_dump()) for name, row in configured.prices.items()}
    made = Purse(Budget(**configured.budget.model_dump(), prices={**shipped(), **own}))
    if kind == "model":
        made.check(configured.model.name)
    return made
