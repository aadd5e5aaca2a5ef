"""Small scenarios and facts for the tests of the evaluation."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from afterword.evaluation.scenarios.scenario import Scenario
from afterword.facts.assertions import Evidence, EvidenceKind, Kind
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope

Json = dict[str, Any]

SAID_AT = datetime(2026, 1, 5, 10, tzinfo=UTC)


def session(session_id: str, *said: str, container: str = "assistant", day: int = 5) -> Json:
    """A session in which a person says these things and an agent answers each."""
    messages: list[Json] = []
    for text in said:
        messages.append({"role": "user", "source": "user", "content": text})
        messages.append({"role": "assistant", "source": "helper", "content": "Noted."})
    times = {"started_at": f"2026-01-{day:02d}T10:00:00Z", "ended_at": f"2026-01-{day:02d}T10:30:00Z"}
    return {"session_id": session_id, "container": container, "messages": messages, **times}


def gold(name: str, statement: str, *keywords: str, status: str = "current", **more: str) -> Json:
    """A gold fact whose keywords must all stand in a statement."""
    base = {"id": name, "kind": "entity", "statement": statement, "keywords": [[word] for word in keywords]}
    return {**base, "status": status, **more}


def moved(name: str = "moved", user_id: str = "mira") -> Json:
    """Two sessions: somebody lives in Graz and has a password, then moves to Linz."""
    return {
        "id": name,
        "user_id": user_id,
        "sessions": [
            session("one", "I live in Graz.", "My dentist is Dr Moser. My sister Ana might move to Rome."),
            session("two", "I moved to Linz.", day=6),
        ],
        "arrival": ["two", "one"],
        "gold": {
            "facts": [
                gold("home-old", "The user lives in Graz.", "Graz", status="superseded"),
                gold("home", "The user lives in Linz.", "Linz"),
                gold("dentist", "The user's dentist is Dr Moser.", "Moser"),
            ],
            "not_facts": [{"statement": "Ana lives in Rome.", "keywords": [["Rome"]], "why": "hypothetical"}],
        },
    }


def scenario(told: Json | None = None) -> Scenario:
    """The scenario as the evaluation reads it."""
    return Scenario.model_validate(told or moved())


def write(folder: Path, *told: Json) -> Path:
    """Write scenarios as files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in told:
        (folder / f"{one['id']}.json").write_text(json.dumps(one))
    return folder


def fact(
    statement: str,
    status: Status = Status.CURRENT,
    *,
    quote: str = "I live in Graz.",
    session_id: str = "one",
    kind: Kind = Kind.ENTITY,
    valid_to: datetime | None = None,
) -> Fact:
    """A stored fact with one quote."""
    evidence = Evidence(EvidenceKind.TURN, quote, session_id, 1, "user", 0)
    return Fact(
        id=statement,
        scope=Scope.user("mira"),
        kind=kind,
        subject="user",
        attribute="said",
        value=statement,
        statement=statement,
        status=status,
        said_at=SAID_AT,
        valid_from=None,
        valid_to=valid_to,
        support=1,
        evidence=(evidence,),
        assertion_ids=(statement,),
    )
