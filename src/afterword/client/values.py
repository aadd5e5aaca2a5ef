"""Re-exports of types and functions that callers of `Afterword` and `ScopeMemory` need and `afterword` does not export.

`dollars` formats an amount of money. `check_depth` raises an error for a saved state that is nested too deep, and
`read_state` for one that is not a conversation.
"""

from afterword.extractors.errors import ReadError
from afterword.extractors.readers import read_state
from afterword.extractors.readers.limits import check_depth
from afterword.facts.assertions import OWNER, Assertion, Evidence
from afterword.facts.fact import FactOrder, Status
from afterword.facts.findings import LONGEST_STATEMENT, LONGEST_TOPIC
from afterword.facts.transcripts import SourceTurn, TimeBasis
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import JobReport, JobResult
from afterword.pipeline.budget import dollars
from afterword.pipeline.errors import ProposalOutdated
from afterword.pipeline.resolution import Changes
from afterword.pipeline.vector_refresh import RefreshResult
from afterword.privacy.record_requests import HIDDEN, HIDDEN_FROM_HERE
from afterword.privacy.redaction import MASK as SECRET_MASK
from afterword.store.agent_requests import RequestOutcome, RequestStatus
from afterword.store.findings.stored_findings import SavingOutcome
from afterword.store.jobs import JobState
from afterword.store.reviews import Contest

HIDDEN_TURNS = (HIDDEN, HIDDEN_FROM_HERE)
"""The texts that replace a turn that was said off the record. `SECRET_MASK` matches the text that replaces a secret."""

__all__ = [
    "HIDDEN_TURNS",
    "LONGEST_STATEMENT",
    "LONGEST_TOPIC",
    "OWNER",
    "SECRET_MASK",
    "Assertion",
    "Changes",
    "Contest",
    "Evidence",
    "FactOrder",
    "Halt",
    "JobReport",
    "JobResult",
    "JobState",
    "ProposalOutdated",
    "ReadError",
    "RefreshResult",
    "RequestOutcome",
    "RequestStatus",
    "SavingOutcome",
    "SourceTurn",
    "Status",
    "TimeBasis",
    "check_depth",
    "dollars",
    "read_state",
]
