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
    from afterword.store.findings.held_findings import SavedFinding
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

_HOMES = {
    "ApiKey": "afterword.store.access.keys",
    "AuditEntry": "afterword.store.access.audit",
    "OpenRequest": "afterword.client.access.keys",
    "AuditPage": "afterword.client.store_results",
    "NewKey": "afterword.client.access.keys",
    "Afterword": "afterword.client.app",
    "AfterwordError": "afterword.errors",
    "BackupFile": "afterword.client.store_results",
    "Budget": "afterword.pipeline.budget",
    "ConsolidatedScope": "afterword.client.results",
    "ConsolidationReport": "afterword.client.results",
    "ConsolidationResult": "afterword.pipeline.consolidation",
    "ContextBlock": "afterword.client.results",
    "CostEstimate": "afterword.client.store_results",
    "CostRange": "afterword.client.store_results",
    "ExportedFile": "afterword.client.store_results",
    "ExtractorAgent": "afterword.agents.extractor_agent",
    "Fact": "afterword.facts.fact",
    "FactChange": "afterword.facts.fact",
    "FactMemory": "afterword.agents.memory",
    "FactOrigin": "afterword.client.results",
    "FactPage": "afterword.client.results",
    "Failure": "afterword.pipeline.batch",
    "HeldRun": "afterword.client.results",
    "ImportResult": "afterword.store.transfer.imports",
    "MemoryImportResult": "afterword.pipeline.memory_import",
    "AgentFinding": "afterword.facts.findings",
    "FindingOrigin": "afterword.client.results",
    "FindingPage": "afterword.client.results",
    "FindingPolicy": "afterword.facts.findings",
    "SavedFinding": "afterword.store.findings.held_findings",
    "Layer": "afterword.client.results",
    "ModelClient": "afterword.extractors.model.client",
    "ModelExtractor": "afterword.extractors.model.extractor",
    "ModelSettings": "afterword.extractors.model.client",
    "NotDue": "afterword.pipeline.batch",
    "NotStarted": "afterword.pipeline.batch",
    "Omission": "afterword.client.results",
    "OmittedFact": "afterword.client.results",
    "OutdatedSession": "afterword.client.store_results",
    "Pause": "afterword.store.forgetting.pauses",
    "Price": "afterword.extractors.model.prices",
    "ProcessedSession": "afterword.client.results",
    "ProcessingOptions": "afterword.client.processing",
    "ProcessingReport": "afterword.client.results",
    "QueueStatus": "afterword.client.store_results",
    "Receipt": "afterword.store.forgetting.erasure",
    "RecordedVerdict": "afterword.client.results",
    "RejectedCandidate": "afterword.client.results",
    "Review": "afterword.client.results",
    "RulesExtractor": "afterword.extractors.rules",
    "Run": "afterword.store.runs",
    "RunEffect": "afterword.store.proposals",
    "RunPage": "afterword.client.results",
    "RunRecord": "afterword.client.results",
    "Saved": "afterword.pipeline.session",
    "SavedSession": "afterword.store.sessions",
    "Scope": "afterword.facts.scopes",
    "ScopeCosts": "afterword.client.results",
    "ScopeMemory": "afterword.client.scope_memory",
    "ScopePage": "afterword.client.store_results",
    "ScopeStatus": "afterword.client.store_results",
    "SearchHit": "afterword.client.results",
    "SearchResults": "afterword.client.results",
    "SessionDetails": "afterword.client.results",
    "SessionOutcome": "afterword.pipeline.session_outcome",
    "SessionPage": "afterword.client.results",
    "Spending": "afterword.store.costs",
    "StoreCosts": "afterword.client.store_results",
    "StoreStatus": "afterword.client.store_results",
    "SyncAfterword": "afterword.client.synchronous.wrappers",
    "SyncScopeMemory": "afterword.client.synchronous.wrappers",
    "TombstoneReplay": "afterword.client.store_results",
    "TurnFacts": "afterword.client.results",
    "VerdictEffect": "afterword.client.results",
    "VectorStatus": "afterword.client.store_results",
    "connect": "afterword.client.synchronous.wrappers",
    "embedder": "afterword.composition",
    "memory_tools": "afterword.agents.tools",
    "open": "afterword.client.app",
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
    if name == "FactMemory":
        import_module("afterword.live_settings").provide()
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
