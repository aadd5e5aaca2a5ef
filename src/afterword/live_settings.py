"""Passes the settings of the profile and the environment to live memories and recorders."""

from __future__ import annotations

from afterword.agents.memory_settings import (
    MemorySettings,
    SessionProcessor,
    StoreReference,
    register_settings_and_processor,
)
from afterword.recall.vectors import Embedder, LocalEmbedder


def register_setting_sources() -> None:
    """Register how memories read their settings, and how recorded sessions are processed with these settings."""
    register_settings_and_processor(_read_memory_settings, _processor_of)


def _processor_of(store: StoreReference | None) -> SessionProcessor:
    from afterword.client.session_processing.background_processor import processor_of_store

    return processor_of_store(store)


def _read_memory_settings() -> MemorySettings:
    from afterword import settings

    configured = settings.load()
    embedder: Embedder | None = LocalEmbedder() if configured.embedding.used_kind == "local" else None
    if configured.embedding.used_kind == "endpoint":
        from afterword.composition import embedder as configured_embedder

        embedder = configured_embedder(configured.embedding)
    return MemorySettings(
        url=configured.store.url,
        privacy=configured.privacy_of_store(),
        limits=configured.store.limits(),
        embedder=embedder,
        budget_tokens=configured.recall.budget_tokens,
        timeout_s=configured.recall.timeout_s,
    )
