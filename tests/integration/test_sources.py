"""Sessions that come from elsewhere: a Studio database, a v0.2 log, standard input."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TimeBasis
from afterword.pipeline.batch import run_batch
from afterword.pipeline.errors import SourceInvalid
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.pipeline.sources.folders import find_sessions
from afterword.store.database.engine import Store, open_store
from batches import state
from commands import Commands

MIRA = Scope.user("mira")

STUDIO = """
CREATE TABLE session (id INTEGER PRIMARY KEY AUTOINCREMENT, created_at DATETIME, updated_at DATETIME, user_id VARCHAR,
    version VARCHAR, team_id INTEGER, name VARCHAR);
CREATE TABLE run (id INTEGER PRIMARY KEY AUTOINCREMENT, created_at DATETIME, updated_at DATETIME, session_id INTEGER
    NOT NULL, status VARCHAR, task JSON, team_result JSON, error_message VARCHAR, version VARCHAR, messages JSON,
    user_id VARCHAR);
CREATE TABLE message (id INTEGER PRIMARY KEY AUTOINCREMENT, created_at DATETIME, updated_at DATETIME, user_id VARCHAR,
    version VARCHAR, config JSON, session_id INTEGER, run_id INTEGER, message_meta JSON);
"""
LOG = """
CREATE TABLE agents (id INTEGER PRIMARY KEY, agent_id INTEGER, wrapper_id INTEGER, session_id TEXT, name TEXT,
    class TEXT, init_args TEXT, timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, UNIQUE(agent_id, session_id));
CREATE TABLE events (event_name TEXT, source_id INTEGER, source_name TEXT, agent_module TEXT DEFAULT NULL,
    agent_class_name TEXT DEFAULT NULL, id INTEGER PRIMARY KEY, json_state TEXT,
    timestamp DATETIME DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE chat_completions (id INTEGER PRIMARY KEY, session_id TEXT, request TEXT, response TEXT);
"""


def said(source: str, content: str, **more: object) -> str:
    return json.dumps({"source": source, "content": content, **more})


def studio(path: Path) -> Path:
    """Two users: one whose run has a result, one whose run has not ended."""
    at = "2026-01-05 10:00:00.000000"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(STUDIO)
        for key, user in ((1, "mira"), (2, "jon")):
            db.execute("INSERT INTO session VALUES (?, ?, ?, ?, '0.0.1', 1, 'talk')", (key, at, at, user))
        told = [
            {
                "source": "user",
                "content": "I live in Graz.",
                "type": "TextMessage",
                "created_at": "2026-01-05T10:00:01Z",
            },
            {"source": "helper", "content": "Noted.", "type": "TextMessage", "created_at": "2026-01-05T10:00:02Z"},
        ]
        result = json.dumps({"task_result": {"messages": told, "stop_reason": None}, "usage": "", "duration": 1.0})
        query = "INSERT INTO run (id, created_at, session_id, status, task, team_result) VALUES (?, ?, ?, ?, ?, ?)"
        db.execute(query, (1, at, 1, "COMPLETE", said("user", "I live in Graz."), result))
        db.execute(query, (2, at, 2, "ACTIVE", said("user", "I live in Wels."), None))
        query = "INSERT INTO message (created_at, config, session_id, run_id) VALUES (?, ?, ?, ?)"
        for one in told:
            db.execute(query, (at, json.dumps(one), 1, 1))
        db.execute(query, (at, said("llm_call_event", '{"type": "LLMCall"}'), 1, 1))
        db.execute(query, ("2026-01-05 10:00:09", said("helper", "Wels is nice.", message_type="text"), 2, 2))
        db.commit()
    return path


def log(path: Path) -> Path:
    """Two sessions whose agents have the same address in memory, one of them a group chat."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(LOG)
        heard = iter(range(1, 60))

        def agent(session: str, address: int, name: str) -> None:
            query = "INSERT INTO agents (agent_id, session_id, name, class, timestamp) VALUES (?, ?, ?, 'Agent', ?)"
            db.execute(query, (address, session, name, f"2026-01-05 10:00:{next(heard):02}.000001"))

        def received(address: int, sender: str, message: object) -> None:
            query = "INSERT INTO events (event_name, source_id, json_state, timestamp) VALUES (?, ?, ?, ?)"
            told = json.dumps({"message": message, "sender": sender, "valid": True})
            db.execute(query, ("received_message", address, told, f"2026-01-05 10:00:{next(heard):02}.000001"))

        agent("first", 7, "assistant")
        agent("first", 8, "user")
        received(7, "user", "I live in Graz.")
        received(8, "assistant", {"content": "Noted.", "role": "assistant"})
        received(7, "user", {"content": "exitcode: 0 (execution succeeded)\nCode output: I live in Rome."})
        agent("second", 7, "chat_manager")
        agent("second", 9, "critic")
        agent("second", 8, "user")
        received(7, "user", "I'm vegetarian.")
        for other in (9, 8):
            received(other, "chat_manager", {"content": "I'm vegetarian.", "name": "user", "role": "user"})
        received(7, "critic", {"content": "Good.", "role": "assistant"})
        db.execute("INSERT INTO events (event_name, source_id, json_state) VALUES ('reply_func_executed', 7, '{}')")
        db.commit()
    return path


@pytest.fixture
def studio_db(tmp_path: Path) -> Path:
    return studio(tmp_path / "autogen04203.db")


@pytest.fixture
def log_db(tmp_path: Path) -> Path:
    return log(tmp_path / "logs.db")


async def processed(path: Path, store: Store, scope: Scope | None = None) -> dict[str, SessionOutcome]:
    ended = await run_batch(store, find_sessions([path], scope=scope), extractor=RulesExtractor())
    return {one.session_id: one for one in ended if isinstance(one, SessionOutcome)}


async def test_a_studio_database_gives_each_users_sessions_with_their_own_times(
    studio_db: Path, tmp_path: Path
) -> None:
    async with await open_store(f"sqlite:///{tmp_path}/store.db") as store:
        ended = await processed(studio_db, store)
        again = await processed(studio_db, store)
    assert {name: one.scope for name, one in ended.items()} == {"studio-1": MIRA, "studio-2": Scope.user("jon")}
    assert {one.transcript.time_basis for one in ended.values()} == {TimeBasis.TURNS}
    turns = {name: [(turn.speaker, turn.text) for turn in one.transcript.turns] for name, one in ended.items()}
    assert turns["studio-1"] == [("user", "I live in Graz."), ("helper", "Noted.")]
    assert turns["studio-2"] == [("user", "I live in Wels."), ("helper", "Wels is nice.")]
    assert ended["studio-1"].transcript.turns[0].said_at == datetime(2026, 1, 5, 10, 0, 1, tzinfo=UTC)
    assert [fact.value for one in ended.values() for fact in one.changes.learned] == ["Graz", "Wels"]
    assert {one.run_id for one in again.values()} == {None}


async def test_a_grown_studio_session_is_read_on(studio_db: Path, tmp_path: Path) -> None:
    async with await open_store(f"sqlite:///{tmp_path}/store.db") as store:
        await processed(studio_db, store)
        with closing(sqlite3.connect(studio_db)) as db:
            query = "INSERT INTO message (created_at, config, session_id, run_id) VALUES (?, ?, ?, ?)"
            db.execute(query, ("2026-01-06 10:00:00", said("user", "I moved to Linz."), 2, 2))
            db.commit()
        ended = await processed(studio_db, store)
    assert [fact.value for fact in ended["studio-2"].changes.learned] == ["Linz"]


async def test_a_v02_log_gives_one_session_for_each_start_of_logging(log_db: Path, tmp_path: Path) -> None:
    async with await open_store(f"sqlite:///{tmp_path}/store.db") as store:
        ended = await processed(log_db, store, MIRA)
    turns = {name: [(turn.speaker, turn.text) for turn in one.transcript.turns] for name, one in ended.items()}
    assert turns["first"][:2] == [("user", "I live in Graz."), ("assistant", "Noted.")]
    assert turns["second"] == [("user", "I'm vegetarian."), ("critic", "Good.")]
    assert {one.transcript.time_basis for one in ended.values()} == {TimeBasis.TURNS}
    assert "Rome" not in {fact.value for one in ended.values() for fact in one.changes.learned}
    assert [fact.value for fact in ended["first"].changes.learned] == ["Graz"]


def _without_user(path: Path) -> Path:
    studio(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE session SET user_id = NULL")
        db.commit()
    return path


def _other(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (id INTEGER)")
        db.commit()
    return path


def _broken(path: Path) -> Path:
    path.write_bytes(b"SQLite format 3\0" + b"x" * 200)
    return path


@pytest.mark.parametrize(
    ("make", "reason"),
    [(log, "say whose"), (_without_user, "say whose"), (_other, "neither"), (_broken, "cannot be read")],
)
def test_a_database_that_cannot_be_used_is_a_clear_refusal(make: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(SourceInvalid, match=reason):
        find_sessions([make(tmp_path / "some.db")])


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def pipe(raw: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return pipe


def test_a_state_can_come_through_a_pipe(afterword: Commands, piped: Any) -> None:
    piped(json.dumps(state("I live in Graz.")).encode())
    (ended,) = json.loads(afterword("run", "-", "--user", "mira", "--session", "one", "--json"))
    assert (ended["session_id"], ended["result"]) == ("one", "done")
    assert [fact["value"] for fact in ended["learned"]] == ["Graz"]


def test_what_a_pipe_brings_must_be_named_and_sound(afterword: Commands, piped: Any) -> None:
    piped(b"{")
    assert "not valid JSON" in afterword("run", "-", "--user", "mira", "--session", "one", expected=1)
    for arguments in (["-"], ["-", "--user", "mira"], ["-", "--session", "one"], ["-", "x", "--session", "one"]):
        assert "--session" in afterword("run", *arguments, expected=2)


def test_one_session_of_a_database_can_be_run_by_name(afterword: Commands, studio_db: Path) -> None:
    ended = json.loads(afterword("run", str(studio_db), "--session", "studio-2", "--json"))
    assert [one["session_id"] for one in ended] == ["studio-2"]
    assert "no session" in afterword("run", str(studio_db), "--session", "studio-9", expected=2)
