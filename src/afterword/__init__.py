"""A memory for AutoGen agents: facts from finished sessions, which later sessions are told.

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
    from afterword.client.access.keys import NewKey, OpenRequest
    from afterword.client.app import (
        Afterword,
        open,  # noqa: A004 - as in gzip.open
    )
    from afterword.client.processing import ProcessingOptions
    from afterword.client.results import (
        ConsolidatedScope,
        ConsolidationReport,
        ContextBlock,
        FactOrigin,
        FactPage,
        FindingOrigin,
        FindingPage,
        HeldRun,
        Layer,
        Omission,
        OmittedFact,
        ProcessedSession,
        ProcessingReport,
        RecordedVerdict,
        RejectedCandidate,
        Review,
        RunPage,
        RunRecord,
        ScopeCosts,
        SearchHit,
        SearchResults,
        SessionDetails,
        SessionPage,
        TurnFacts,
        VerdictEffect,
    )
    from afterword.client.scope_memory import ScopeMemory
    from afterword.client.store_results import (
        AuditPage,
        BackupFile,
        CostEstimate,
        CostRange,
        ExportedFile,
        OutdatedSession,
        QueueStatus,
        ScopePage,
        ScopeStatus,
        StoreCosts,
        StoreStatus,
        TombstoneReplay,
        VectorStatus,
    )
    from afterword.client.synchronous.wrappers import SyncAfterword, SyncScopeMemory, connect
    from afterword.composition import embedder
    from afterword.errors import AfterwordError
    from afterword.extractors.model.client import ModelClient, ModelSettings
    from afterword.extractors.model.extractor import ModelExtractor
    from afterword.extractors.model.prices import Price
    from afterword.extractors.rules import RulesExtractor
    from afterword.facts.fact import Fact, FactChange
    from afterword.facts.findings import AgentFinding, FindingPolicy
    from afterword.facts.scopes import Scope
    from afterword.pipeline.batch import Failure, NotDue, NotStarted
    from afterword.pipeline.budget import Budget
    from afterword.pipeline.consolidation import ConsolidationResult
    from afterword.pipeline.intake import Saved
    from afterword.pipeline.memory_import import MemoryImportResult
    from afterword.pipeline.session import process_session
    from afterword.pipeline.session_outcome import SessionOutcome
    from afterword.store.access.audit import AuditEntry
    from afterword.store.access.keys import ApiKey
    from afterword.store.costs import Spending
    from afterword.store.database.engine import open_store
    from afterword.store.findings.stored_findings import SavedFinding
    from afterword.store.forgetting.erasure import Receipt
    from afterword.store.forgetting.pauses import Pause
    from afterword.store.proposals import RunEffect
    from afterword.store.runs import Run
    from afterword.store.sessions import SavedSession
    from afterword.store.transfer.imports import ImportResult

    __version__: str

__all__ = [
    "Afterword",
    "AfterwordError",
    "AgentFinding",
    "ApiKey",
    "AuditEntry",
    "AuditPage",
    "BackupFile",
    "Budget",
    "ConsolidatedScope",
    "ConsolidationReport",
    "ConsolidationResult",
    "ContextBlock",
    "CostEstimate",
    "CostRange",
    "ExportedFile",
    "ExtractorAgent",
    "Fact",
    "FactChange",
    "FactMemory",
    "FactOrigin",
    "FactPage",
    "Failure",
    "FindingOrigin",
    "FindingPage",
    "FindingPolicy",
    "HeldRun",
    "ImportResult",
    "Layer",
    "MemoryImportResult",
    "ModelClient",
    "ModelExtractor",
    "ModelSettings",
    "NewKey",
    "NotDue",
    "NotStarted",
    "Omission",
    "OmittedFact",
    "OpenRequest",
    "OutdatedSession",
    "Pause",
    "Price",
    "ProcessedSession",
    "ProcessingOptions",
    "ProcessingReport",
    "QueueStatus",
    "Receipt",
    "RecordedVerdict",
    "RejectedCandidate",
    "Review",
    "RulesExtractor",
    "Run",
    "RunEffect",
    "RunPage",
    "RunRecord",
    "Saved",
    "SavedFinding",
    "SavedSession",
    "Scope",
    "ScopeCosts",
    "ScopeMemory",
    "ScopePage",
    "ScopeStatus",
    "SearchHit",
    "SearchResults",
    "SessionDetails",
    "SessionOutcome",
    "SessionPage",
    "Spending",
    "StoreCosts",
    "StoreStatus",
    "SyncAfterword",
    "SyncScopeMemory",
    "TombstoneReplay",
    "TurnFacts",
    "VectorStatus",
    "VerdictEffect",
    "__version__",
    "connect",
    "embedder",
    "memory_tools",
    "open",
    "open_store",
    "process_session",
    "record_session",
    "resume",
]

_NAMES = {
    "afterword.agents.extractor_agent": "ExtractorAgent",
    "afterword.agents.memory": "FactMemory",
    "afterword.agents.recorder": "record_session resume",
    "afterword.agents.tools": "memory_tools",
    "afterword.client.access.keys": "NewKey OpenRequest",
    "afterword.client.app": "Afterword open",
    "afterword.client.processing": "ProcessingOptions",
    "afterword.client.results": (
        "ConsolidatedScope ConsolidationReport ContextBlock FactOrigin FactPage FindingOrigin FindingPage HeldRun "
        "Layer Omission OmittedFact ProcessedSession ProcessingReport RecordedVerdict RejectedCandidate Review "
        "RunPage RunRecord ScopeCosts SearchHit SearchResults SessionDetails SessionPage TurnFacts VerdictEffect"
    ),
    "afterword.client.scope_memory": "ScopeMemory",
    "afterword.client.store_results": (
        "AuditPage BackupFile CostEstimate CostRange ExportedFile OutdatedSession QueueStatus ScopePage "
        "ScopeStatus StoreCosts StoreStatus TombstoneReplay VectorStatus"
    ),
    "afterword.client.synchronous.wrappers": "connect SyncAfterword SyncScopeMemory",
    "afterword.composition": "embedder",
    "afterword.errors": "AfterwordError",
    "afterword.extractors.model.client": "ModelClient ModelSettings",
    "afterword.extractors.model.extractor": "ModelExtractor",
    "afterword.extractors.model.prices": "Price",
    "afterword.extractors.rules": "RulesExtractor",
    "afterword.facts.fact": "Fact FactChange",
    "afterword.facts.findings": "AgentFinding FindingPolicy",
    "afterword.facts.scopes": "Scope",
    "afterword.pipeline.batch": "Failure NotDue NotStarted",
    "afterword.pipeline.budget": "Budget",
    "afterword.pipeline.consolidation": "ConsolidationResult",
    "afterword.pipeline.intake": "Saved",
    "afterword.pipeline.memory_import": "MemoryImportResult",
    "afterword.pipeline.session": "process_session",
    "afterword.pipeline.session_outcome": "SessionOutcome",
    "afterword.store.access.audit": "AuditEntry",
    "afterword.store.access.keys": "ApiKey",
    "afterword.store.costs": "Spending",
    "afterword.store.database.engine": "open_store",
    "afterword.store.findings.stored_findings": "SavedFinding",
    "afterword.store.forgetting.erasure": "Receipt",
    "afterword.store.forgetting.pauses": "Pause",
    "afterword.store.proposals": "RunEffect",
    "afterword.store.runs": "Run",
    "afterword.store.sessions": "SavedSession",
    "afterword.store.transfer.imports": "ImportResult",
}
"""The public names that each module holds."""


# The application configures logging. Without any handler Python would write our warnings to its terminal.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("afterword")
        except PackageNotFoundError:
            return "0+not-installed"
    home = next((module for module, names in _NAMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module 'afterword' has no attribute {name!r}")
    public_object = getattr(import_module(home), name)
    globals()[name] = public_object
    return public_object


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
