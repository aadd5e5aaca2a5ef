"""Give live memories the settings of the profile and the environment, as the command line has them."""

from __future__ import annotations

from afterword.agents import memory_settings
from afterword.agents.memory_settings import MemorySettings
from afterword.recall.vectors import Embedder, LocalEmbedder


def provide() -> None:
    """Let memories take their settings from the profile and the environment."""
    memory_settings.read_from(_read)


def _read() -> MemorySettings:
    from afterword import settings

    configured = settings.load()
    embedder: Embedder | None = LocalEmbedder() if configured.embedding.used_kind == "local" else None
    if configured.embedding.used_kind == "endpoint":
        from afterword.composition import embedder as configured_embedder

        embedder = configured_embedder(configured.embedding)
    return MemorySettings(
        url=configured.store.url,
        privacy=configured.store_privacy(),
        connections=configured.store.connections(),
        embedder=embedder,
        budget_tokens=configured.recall.budget_tokens,
        timeout_s=configured.recall.timeout_s,
    )
