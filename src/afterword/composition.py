"""Builds the objects that the settings select: extractor, judge, model client, embedder and cost tracker.

Only this module turns settings into objects. The libraries that an object needs are imported when it is built.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from afterword import settings
from afterword.errors import ArgumentInvalid
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.embeddings import EndpointEmbedder
from afterword.extractors.model.prices import shipped_prices
from afterword.recall.vectors import LocalEmbedder
from afterword.setting_sections import EmbeddingOptions, ModelOptions

if TYPE_CHECKING:
    from afterword.extractors.extractor import Extractor
    from afterword.extractors.judge import Judge
    from afterword.pipeline.budget import CostTracker

EMBEDDING_RETRIES = 2


@dataclass(frozen=True, slots=True)
class ExtractorAndJudge:
    """An extractor, and the judge that belongs to it."""

    extractor: Extractor
    judge: Judge


@asynccontextmanager
async def open_extractor_and_judge(kind: str, options: ModelOptions) -> AsyncIterator[ExtractorAndJudge]:
    """Yield the extractor and judge of a kind, `rules` or `model`. At the end, connections to a model are closed.

    Raises `ArgumentInvalid` for another kind.
    """
    if kind == "rules":
        from afterword.extractors.rules import RulesExtractor, RulesJudge

        yield ExtractorAndJudge(RulesExtractor(), RulesJudge())
        return
    if kind != "model":
        raise ArgumentInvalid(f"extractor={kind!r} is unknown; use rules or model")
    from afterword.extractors.model.extractor import EXTRACT_EVERYTHING_PROMPT, EXTRACT_PROMPT, ModelExtractor
    from afterword.extractors.model.judge import ModelJudge

    extract = EXTRACT_EVERYTHING_PROMPT if options.detail == "everything" else EXTRACT_PROMPT
    async with model_client(options) as client:
        yield ExtractorAndJudge(
            ModelExtractor(client, extract=extract, language=options.statement_language), ModelJudge(client)
        )


def model_client(options: ModelOptions) -> ModelClient:
    """Return a client of the configured model, to be used with `async with`.

    Raises `EndpointMisconfigured` if no request could be made with these options.
    """
    return ModelClient(
        ModelSettings(
            model=options.name,
            base_url=options.base_url,
            api_key=options.used_key(),
            timeout_s=options.timeout_s,
            max_retries=options.max_retries,
            mode=options.mode,
            max_completion_tokens=options.max_completion_tokens,
            modes_file=settings.endpoint_modes_path(),
        )
    )


def embedder(options: EmbeddingOptions | None = None) -> LocalEmbedder | EndpointEmbedder | None:
    """Return the configured embedder, for example for `FactMemory(user="mira", embedder=embedder())`.

    Returns None if `[embedding]` selects none: recall then ranks by words alone. Without `options` the settings are
    read from the profile and the environment. No model is loaded and no request is sent yet. An `EndpointEmbedder`
    must be closed after use.

    Raises `SettingsInvalid`, and `EndpointMisconfigured` if no request could be made with these options.
    """
    chosen = settings.load().embedding if options is None else options
    if chosen.used_kind == "none":
        return None
    if chosen.used_kind == "local":
        return LocalEmbedder()
    endpoint = ModelSettings(
        model=chosen.model,
        base_url=chosen.base_url,
        api_key=chosen.used_key(),
        timeout_s=chosen.timeout_s,
        max_retries=EMBEDDING_RETRIES,
    )
    return EndpointEmbedder(endpoint, chosen.dimension, is_shortened=chosen.shorten)


@asynccontextmanager
async def open_embedder(options: EmbeddingOptions) -> AsyncIterator[LocalEmbedder | EndpointEmbedder | None]:
    """Yield the configured embedder, or None if there is none. Its connections are closed at the end."""
    configured_embedder = embedder(options)
    try:
        yield configured_embedder
    finally:
        if isinstance(configured_embedder, EndpointEmbedder):
            await configured_embedder.close()


def configured_cost_tracker(configured: settings.Settings, extractor_kind: str) -> CostTracker:
    """Return a cost tracker for one command, with the configured budget, the shipped prices and those of the profile.

    Raises `PriceUnknown` if a budget in dollars is set and the price of the model is not known.
    """
    from afterword.pipeline.budget import Budget, CostTracker

    prices = {**shipped_prices(), **configured.prices}
    tracker = CostTracker(Budget(**configured.budget.model_dump(), prices=prices))
    if extractor_kind == "model":
        tracker.check_price(configured.model.name)
    return tracker
