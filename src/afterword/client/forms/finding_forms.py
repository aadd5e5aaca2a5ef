"""The JSON forms of findings of agents, for `--json` of the command line and for the HTTP service."""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from afterword.json_form import JsonForm, Nullable

if TYPE_CHECKING:
    from afterword.client.results import FindingOrigin, FindingPage
    from afterword.facts.assertions import Evidence
    from afterword.facts.findings import AgentFinding, FindingStatus

_quote_json: JsonForm[Evidence] = JsonForm(
    "Quote", "Words of the agent, and the number of their turn.", turn=Nullable(int), quote=str
)
_statement_json: JsonForm[AgentFinding] = JsonForm(
    "Statement",
    "What an agent stated.",
    id=str,
    agent=str,
    kind=(str, lambda finding: "advice" if finding.is_advice else "finding"),
    topic=str,
    statement=str,
)
_saying_json: JsonForm[AgentFinding] = JsonForm(
    "Saying",
    "When and how an agent stated it.",
    said_at=datetime,
    first_said_at=Nullable(datetime),
    expires_at=datetime,
    times=(int, lambda finding: len(finding.sayings)),
    after_tools=bool,
    review=str,
    source=Nullable(str),
    session_id=Nullable(str),
    evidence=[_quote_json],
)
finding_json: JsonForm[AgentFinding] = JsonForm(
    "Finding", "A statement that an agent made.", **_statement_json.parts, **_saying_json.parts
)
dated_finding_json: JsonForm[tuple[AgentFinding, FindingStatus]] = JsonForm(
    "DatedFinding",
    "A statement that an agent made, and its status at a time.",
    **_statement_json.parts_at(itemgetter(0)),
    status=(str, itemgetter(1)),
    **_saying_json.parts_at(itemgetter(0)),
)
_finding_saying_json: JsonForm[tuple[AgentFinding, tuple[int, ...]]] = JsonForm(
    "FindingSaying",
    "A time that an agent stated a finding, and the runs that recorded it.",
    **finding_json.parts_at(itemgetter(0)),
    runs=([int], itemgetter(1)),
)
findings_json: JsonForm[FindingPage] = JsonForm(
    "FindingPage",
    "The findings of agents, newest first. `other_statuses` counts those of other statuses.",
    findings=([dated_finding_json], lambda page: [(each, each.status_at(page.at)) for each in page.findings]),
    other_statuses=int,
)
finding_origin_json: JsonForm[FindingOrigin] = JsonForm(
    "FindingOrigin",
    "A finding, and each time that an agent stated it.",
    finding=finding_json,
    sayings=[_finding_saying_json],
)
