"""The open scenarios with their gold facts as the store: what `recall_quality` asks at a budget of 2,000 tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

from afterword.facts.assertions import (
    OWNER,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
)
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Transcript, Turn
from afterword.store import ledger, sessions
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.reading.recall import recall

BUDGET_TOKENS = 2_000
Values = dict[str, Any]


@dataclass(slots=True)
class Tally:
    """How many needed facts were in the block, how many questions had all of theirs, and what should not be there."""

    needed: int = 0
    found: int = 0
    questions: int = 0
    answered: int = 0
    withdrawn_shown: int = 0


def scenarios(folder: Path) -> list[Values]:
    """Return the scenarios of a folder."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


async def measure(found: list[Values]) -> Tally:
    """Return the tally over all scenarios."""
    tally = Tally()
    for scenario in found:
        async with Store("sqlite://") as store:
            await store.migrate()
            await _keep(store, scenario)
            for question in scenario["gold"]["questions"]:
                await _ask(store, scenario, question, tally)
    return tally


async def _ask(store: Store, scenario: Values, question: Values, tally: Tally) -> None:
    status = {fact["id"]: fact["status"] for fact in scenario["gold"]["facts"]}
    needs = {one for one in question["needs"] if status[one] != "retracted"}
    ended = max(_instant(one["ended_at"]) for one in scenario["sessions"])
    at = _day(question["as_of"], time(12)) if question.get("as_of") else ended + timedelta(hours=1)
    scope = Scope.user(scenario["user_id"])
    found = await recall(store, scope, question["question"], at=at, budget_tokens=BUDGET_TOKENS)
    shown = {fact.id for fact in found.facts} | {former.fact.id for former in found.former}
    tally.withdrawn_shown += sum(
        status[fact.id] == "retracted" and fact.is_served for fact in found.facts if not question.get("as_of")
    )
    tally.needed += len(needs)
    tally.found += len(needs & shown)
    tally.questions += bool(needs)
    tally.answered += bool(needs) and needs <= shown


async def _keep(store: Store, scenario: Values) -> None:
    scope = Scope.user(scenario["user_id"])
    facts = scenario["gold"]["facts"]
    said = {fact["id"]: _assertion(scope, scenario, fact) for fact in facts}
    ended = max(_instant(one["ended_at"]) for one in scenario["sessions"])
    takebacks = [_takeback(said[fact["id"]], ended) for fact in facts if fact["status"] == "retracted"]
    verdicts = [
        *(_verdict(fact["id"], fact["superseded_by"], Relation.CHANGES) for fact in facts if fact.get("superseded_by")),
        *(_verdict(one.id.removesuffix("-gone"), one.id, Relation.RETRACTS) for one in takebacks),
    ]
    reading = WindowReading("gold", None, None, (*said.values(), *takebacks))
    proposal = Proposal(scope, "import:gold", "import", "gold", "gold", ended, 0, (reading,), tuple(verdicts))
    with store.writing() as db:
        ledger.apply_run(db, scope, ledger.propose_run(db, proposal), ended)
        for session in scenario["sessions"]:
            turns = tuple(_turns(session))
            transcript = Transcript(turns, "gold", ("user",))
            sessions.save_transcript(db, scope, session["session_id"], transcript, ended, is_done=True)


def _turns(session: Values) -> Iterator[Turn]:
    for number, message in enumerate(session["messages"], 1):
        role = Role.HUMAN if message["role"] == "user" else Role.AGENT
        yield Turn(
            number, message.get("source", "user"), role, str(message.get("content", "")), _said_at(session, number)
        )


def _assertion(scope: Scope, scenario: Values, fact: Values) -> Assertion:
    by_id = {one["session_id"]: one for one in scenario["sessions"]}
    cited = fact["evidence"]
    first = cited[0]
    return Assertion(
        id=fact["id"],
        scope=scope,
        session_id=first["session_id"],
        act=SpeechAct.STATE,
        kind=Kind(fact["kind"]),
        subject=OWNER if fact["about"] == "user" else fact["about"],
        attribute="note",
        value="",
        statement=fact["statement"],
        speaker="user",
        authority=Authority.STATED,
        said_at=_said_at(by_id[first["session_id"]], first["message"] + 1),
        evidence=tuple(
            Evidence(EvidenceKind.TURN, one["quote"], one["session_id"], one["message"] + 1, "user", 0) for one in cited
        ),
        valid_from=_day(fact["valid_from"], time.min) if fact.get("valid_from") else None,
        valid_to=_day(fact["valid_to"], time(23, 59, 59))
        if fact.get("valid_to") and fact["status"] != "superseded"
        else None,
    )


def _takeback(said: Assertion, at: datetime) -> Assertion:
    evidence = (Evidence(EvidenceKind.PERSON, "forget that"),)
    return Assertion(
        id=f"{said.id}-gone",
        scope=said.scope,
        session_id=None,
        act=SpeechAct.RETRACT,
        kind=said.kind,
        subject=said.subject,
        attribute=said.attribute,
        value="",
        statement="Withdrawn.",
        speaker="user",
        authority=Authority.STATED,
        said_at=at,
        evidence=evidence,
    )


def _verdict(earlier: str, later: str, relation: Relation) -> Verdict:
    return Verdict(earlier, later, relation, "gold", "gold")


def _said_at(session: Values, number: int) -> datetime:
    return _instant(session["started_at"]) + timedelta(seconds=number)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _day(text: str, clock: time) -> datetime:
    return datetime.combine(datetime.fromisoformat(text).date(), clock, UTC)
