"""Re-exports of the values that `Afterword` and `ScopeMemory` take and return, for callers that name their types; with
`dollars`, which formats an amount, and `check_depth`, which refuses a state that is nested too deep."""

from afterword.extractors.errors import ReadError
from afterword.extractors.readers.limits import check_depth
from afterword.facts.assertions import OWNER, Assertion, Evidence
from afterword.facts.dependents import Dependent
from afterword.facts.fact import Fact, Status
from afterword.facts.fact_changes import FactChange
from afterword.facts.fact_filter import FactOrder
from afterword.facts.findings import LONGEST_STATEMENT, LONGEST_TOPIC, AgentFinding, FindingPolicy, FindingStatus
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import SourceTurn, TimeBasis, Transcript, Turn
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import Ending, JobReport, JobResult
from afterword.pipeline.batch import Failure, NotDue, NotStarted
from afterword.pipeline.budget import dollars
from afterword.pipeline.consolidation import ConsolidationResult
from afterword.pipeline.errors import ProposalOutdated
from afterword.pipeline.resolution import Changes
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.pipeline.vector_refresh import RefreshResult
from afterword.privacy.record_requests import HIDDEN, HIDDEN_FROM_HERE
from afterword.privacy.redaction import MASK as SECRET_MASK
from afterword.store.access.audit import AuditEntry
from afterword.store.access.keys import ApiKey
from afterword.store.costs import Spending
from afterword.store.findings.saved_findings import SavedFinding, SavingOutcome
from afterword.store.forgetting.erasure import Receipt
from afterword.store.jobs import JobState
from afterword.store.reading.fact_lists import FactCounts
from afterword.store.requests import RequestOutcome, RequestStatus
from afterword.store.reviews import Contest
from afterword.store.run_effects import RunEffect
from afterword.store.runs import Run
from afterword.store.sessions import SavedSession

HIDDEN_TURNS = (HIDDEN, HIDDEN_FROM_HERE)
"""What stands in the place of a turn that was said off the record. `SECRET_MASK` finds what stands for a secret."""

__all__ = [
    "HIDDEN_TURNS",
    "LONGEST_STATEMENT",
    "LONGEST_TOPIC",
    "OWNER",
    "SECRET_MASK",
    "AgentFinding",
    "ApiKey",
    "Assertion",
    "AuditEntry",
    "Changes",
    "ConsolidationResult",
    "Contest",
    "Dependent",
    "Ending",
    "Evidence",
    "Fact",
    "FactChange",
    "FactCounts",
    "FactOrder",
    "Failure",
    "FindingPolicy",
    "FindingStatus",
    "Halt",
    "JobReport",
    "JobResult",
    "JobState",
    "NotDue",
    "NotStarted",
    "ProposalOutdated",
    "ReadError",
    "Receipt",
    "RefreshResult",
    "RequestOutcome",
    "RequestStatus",
    "Run",
    "RunEffect",
    "SavedFinding",
    "SavedSession",
    "SavingOutcome",
    "Scope",
    "SessionOutcome",
    "SourceTurn",
    "Spending",
    "Status",
    "TimeBasis",
    "Transcript",
    "Turn",
    "check_depth",
    "dollars",
]
