"""What AutoGen agents remember after a session ends.

Each public name is imported when it is first used, so that a live agent loads only what it needs.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from afterword.agents.extractor_agent import ExtractorAgent
    from afterword.agents.memory import FactMemory
    from afterword.agents.recorder import record_session, resume
    from afterword.agents.tools import memory_tools
    from afterword.client import Afterword, ScopeMemory, open  # noqa: A004 - as in gzip.open
    from afterword.client.processing import ProcessingOptions
    from afterword.composition import embedder
    from afterword.extractors.model.client import ModelClient, ModelSettings
    from afterword.extractors.model.extractor import ModelExtractor
    from afterword.extractors.model.prices import Price
    from afterword.extractors.rules import RulesExtractor
    from afterword.facts.scopes import Scope
    from afterword.pipeline.budget import Budget
    from afterword.pipeline.intake import Saved
    from afterword.pipeline.session import process_session
    from afterword.store.database.engine import open_store

    __version__: str

__all__ = [
    "Afterword",
    "Budget",
    "ExtractorAgent",
    "FactMemory",
    "ModelClient",
    "ModelExtractor",
    "ModelSettings",
    "Price",
    "ProcessingOptions",
    "RulesExtractor",
    "Saved",
    "Scope",
    "ScopeMemory",
    "__version__",
    "embedder",
    "memory_tools",
    "open",
    "open_store",
    "process_session",
    "record_session",
    "resume",
]

_HOMES = {
    "Afterword": "afterword.client",
    "Budget": "afterword.pipeline.budget",
    "ExtractorAgent": "afterword.agents.extractor_agent",
    "FactMemory": "afterword.agents.memory",
    "ModelClient": "afterword.extractors.model.client",
    "ModelExtractor": "afterword.extractors.model.extractor",
    "ModelSettings": "afterword.extractors.model.client",
    "Price": "afterword.extractors.model.prices",
    "ProcessingOptions": "afterword.client.processing",
    "RulesExtractor": "afterword.extractors.rules",
    "Saved": "afterword.pipeline.session",
    "Scope": "afterword.facts.scopes",
    "ScopeMemory": "afterword.client",
    "embedder": "afterword.composition",
    "memory_tools": "afterword.agents.tools",
    "open": "afterword.client",
    "open_store": "afterword.store.database.engine",
    "process_session": "afterword.pipeline.session",
    "record_session": "afterword.agents.recorder",
    "resume": "afterword.agents.recorder",
}


# The application configures logging. Without any handler Python would write our warnings to its terminal.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module 'afterword' has no attribute {name!r}")
    public_object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = public_object
    return public_object


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("afterword")
    except PackageNotFoundError:
        return "0+not-installed"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
