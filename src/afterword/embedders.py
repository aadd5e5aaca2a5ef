"""What makes vectors, as configured: a composition root, for applications as for the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from afterword import settings
from afterword.extractors.model.client import ModelSettings
from afterword.extractors.model.embeddings import EndpointEmbedder
from afterword.recall.vectors import LocalEmbedder
from afterword.settings import EmbeddingOptions

RETRIES = 2


def embedder(options: EmbeddingOptions | None = None) -> LocalEmbedder | EndpointEmbedder | None:
    """Return the configured embedder, for example for `FactMemory(user="mira", embedder=embedder())`.

    None where `[embedding]` asks for none: then recall goes by words alone. Without `options` the settings are read
    from the profile and the environment. Nothing is loaded or asked yet. Close an `EndpointEmbedder` when you are done.
    Raises `SettingsInvalid`, and `EndpointMisconfigured` for an endpoint that could never be asked.
    """
    chosen = settings.load().embedding if options is None else options
    if chosen.kind == "none":
        return None
    if chosen.kind == "local":
        return LocalEmbedder()
    endpoint = ModelSettings(
        model=chosen.model,
        base_url=chosen.base_url,
        api_key=chosen.api_key.get_secret_value() if chosen.api_key else None,
        timeout_s=chosen.timeout_s,
        max_retries=RETRIES,
    )
    return EndpointEmbedder(endpoint, chosen.dimension, is_shortened=chosen.shorten)


@asynccontextmanager
async def embedding(options: EmbeddingOptions) -> AsyncIterator[LocalEmbedder | EndpointEmbedder | None]:
    """Open the configured embedder; its connections are closed at the end."""
    made = embedder(options)
    try:
        yield made
    finally:
        if isinstance(made, EndpointEmbedder):
            await made.close()
