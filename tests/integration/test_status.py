"""What `afterword status` tells of a memory: what is pending, and what waits to be forgotten."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Window
from afterword.extractors.testing import OracleExtractor
from afterword.facts.assertions import Kind, SpeechAct
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import sessions
from afterword.store.database.engine import open_store
from commands import Commands

LENA = Scope.user("lena")


def find(window: Window) -> list[Candidate]:
    """Understand `Jan Petrik likes tea`, and `forget tea` of the user."""
    found = []
    for turn in window.turns:
        subject, _, drink = turn.text.rpartition(" likes ")
        act = SpeechAct.STATE if drink != turn.text else SpeechAct.ERASE
        found.append(
            Candidate(
                kind=Kind.PREFERENCE,
                subject=subject or "user",
                attribute="drink",
                value=drink.removeprefix("forget "),
                statement=turn.text,
                evidence=[Citation(turn=turn.number, quote=turn.text)],
                act=act,
            )
        )
    return found


async def said(url: str, session_id: str, day: int, *texts: str) -> None:
    messages = [{"content": text, "source": "user", "type": "UserMessage"} for text in texts]
    state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
    at = datetime(2026, 3, day, tzinfo=UTC)
    async with await open_store(url) as store:
        saved = Saved(LENA, session_id, state=state, started_at=at, ended_at=at)
        await process_session(store, saved, extractor=OracleExtractor(find))


def test_what_is_pending_and_what_waits_to_be_forgotten_is_counted(afterword: Commands, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/afterword.db"
    names = ("Jan Petrik likes tea", "Jan Oduya likes rum", "Jan likes milk", "user likes beer")
    asyncio.run(said(url, "a", 1, *names))
    asyncio.run(said(url, "b", 2, "forget beer"))
    (told,) = json.loads(afterword("status", "--json"))["scopes"]
    assert (told["pending"], told["to_forget"], told["current"]) == (1, 1, 2), "one request, as in the review"


def test_the_age_of_the_queue_and_the_kinds_of_failures_are_told(afterword: Commands, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/afterword.db"
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)

    async def wait_and_fail() -> None:
        async with await open_store(url) as store:
            with store.writing() as db:
                for name, at in (("old", an_hour_ago), ("new", datetime.now(UTC))):
                    sessions.save_state(db, LENA, name, component="x", state={}, at=at)
                for name, reason in (("a", "SourceInvalid: a"), ("b", "SourceInvalid: b"), ("c", "AnswerCut: c")):
                    sessions.mark_failed(db, LENA, name, reason, an_hour_ago)

    assert asyncio.run(kept(url)) == 0
    assert json.loads(afterword("status", "--json"))["queue"] == {
        "waiting": 0,
        "oldest_since": None,
        "oldest_age_s": None,
    }
    asyncio.run(wait_and_fail())
    told = json.loads(afterword("status", "--json"))
    assert told["reasons"] == {"SourceInvalid": 2, "AnswerCut": 1}
    assert told["queue"]["waiting"] == 2
    assert 3600 <= told["queue"]["oldest_age_s"] < 4200
    assert datetime.fromisoformat(told["queue"]["oldest_since"]) == an_hour_ago
    shown = afterword("status")
    assert "queue: 2 waiting, the oldest for 1:0" in shown
    assert "failures: 2 SourceInvalid, 1 AnswerCut" in shown


async def kept(url: str) -> int:
    async with await open_store(url) as store:
        with store.reading() as db:
            return len(sessions.read_sessions(db))
