"""The background processor of each store, for recorders that name a store and open no `Afterword`."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from afterword.agents.store_reference import SharedStore, StoreReference, resolve_url
from afterword.client.app import open as open_app
from afterword.client.session_processing.background_processor import BackgroundProcessor
from afterword.store.database.engine import Store

_of_stores: WeakKeyDictionary[Store, BackgroundProcessor] = WeakKeyDictionary()
_of_urls: dict[str | None, BackgroundProcessor] = {}


def processor_of_store(reference: StoreReference | None) -> BackgroundProcessor:
    """Return the processor of a store, with the settings of the profile and the environment; one for each store.

    Raises `SettingsInvalid`, and `StoreError` if the environment variable of the store is not set.
    """
    if isinstance(reference, Store):
        if reference not in _of_stores:
            _of_stores[reference] = BackgroundProcessor(open_app(store=reference).resources)
        return _of_stores[reference]
    url = reference.url if isinstance(reference, SharedStore) else resolve_url(reference)
    if url not in _of_urls:
        _of_urls[url] = BackgroundProcessor(open_app(url).resources, closes_resources=True)
    return _of_urls[url]
