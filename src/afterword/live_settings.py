"""Passes the settings of the profile and the environment to live memories and recorders."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from afterword.agents.memory_settings import (
    MemorySettings,
    SessionProcessor,
    StoreReference,
    register_settings_and_processor,
)
from afterword.recall.vectors import Embedder, LocalEmbedder

if TYPE_CHECKING:
    from afterword.setting_sections import EmbeddingOptions


def register_setting_sources() -> None:
    """Register how memories read their settings, and how recorded sessions are processed with these settings."""
    register_settings_and_processor(_read_memory_settings, _processor_of)


def _processor_of(store: StoreReference | None) -> SessionProcessor:
    from afterword.client.session_processing.background_processor import processor_of_store

    return processor_of_store(store)


def _read_memory_settings() -> MemorySettings:
    from afterword import settings

    configured = settings.load()
    return MemorySettings(
        url=configured.store.url,
        privacy=configured.privacy_of_store(),
        limits=configured.store.limits(),
        open_embedder=partial(_open_embedder, configured.embedding),
        budget_tokens=configured.recall.budget_tokens,
        timeout_s=configured.recall.timeout_s,
    )


def _open_embedder(options: EmbeddingOptions) -> Embedder | None:
    if options.used_kind == "endpoint":
        from afterword.composition import embedder

        return embedder(options)
    return LocalEmbedder() if options.used_kind == "local" else None
