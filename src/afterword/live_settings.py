"""Reads the settings of live memories and recorders. Importing it registers the functions that do so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from afterword.agents.memory_settings import (
    MemorySettings,
    SessionProcessor,
    SettingSources,
    StoreReference,
    StoreSettings,
    register_setting_sources,
)
from afterword.recall.vectors import Embedder, LocalEmbedder

if TYPE_CHECKING:
    from afterword.setting_sections import EmbeddingOptions
    from afterword.settings import Settings


def _processor_of(store: StoreReference | None) -> SessionProcessor:
    from afterword.client.session_processing.background_processor import processor_of_store

    return processor_of_store(store)


def _read_store_settings() -> StoreSettings:
    from afterword import settings

    return _store_settings_of(settings.load())


def _read_memory_settings() -> MemorySettings:
    from afterword import settings

    configured = settings.load()
    return MemorySettings(
        store=_store_settings_of(configured),
        embedder=_configured_embedder(configured.embedding),
        budget_tokens=configured.recall.budget_tokens,
        timeout_s=configured.recall.timeout_s,
    )


def _store_settings_of(configured: Settings) -> StoreSettings:
    return StoreSettings(configured.store.url, configured.privacy_of_store(), configured.store.limits())


def _configured_embedder(options: EmbeddingOptions) -> Embedder | None:
    if options.used_kind == "endpoint":
        from afterword.composition import embedder

        return embedder(options)
    return LocalEmbedder() if options.used_kind == "local" else None


register_setting_sources(SettingSources(_read_store_settings, _read_memory_settings, _processor_of))
