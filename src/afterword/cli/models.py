"""Who extracts and who judges, as configured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from afterword.extractors.clients import ModelClient, ModelSettings
from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge, RulesJudge
from afterword.extractors.model import ModelExtractor
from afterword.extractors.model_judge import ModelJudge
from afterword.extractors.rules import RulesExtractor
from afterword.settings import ModelOptions, modes_path


@dataclass(frozen=True, slots=True)
class Workers:
    """An extractor and the judge that goes with it."""

    extractor: Extractor
    judge: Judge


def model_settings(options: ModelOptions) -> ModelSettings:
    """Return what a client of the configured model needs. Raises `EndpointMisconfigured` where none could use it."""
    return ModelSettings(
        model=options.name,
        base_url=options.base_url,
        api_key=options.api_key.get_secret_value() if options.api_key else None,
        timeout_s=options.timeout_s,
        max_retries=options.max_retries,
        mode=options.mode,
        modes_file=modes_path(),
    )


@asynccontextmanager
async def working(kind: str, options: ModelOptions) -> AsyncIterator[Workers]:
    """Open the extractor and the judge of a kind, `rules` or `model`; a model's connections are closed at the end."""
    if kind == "rules":
        yield Workers(RulesExtractor(), RulesJudge())
        return
    async with ModelClient(model_settings(options)) as client:
        yield Workers(ModelExtractor(client), ModelJudge(client))
