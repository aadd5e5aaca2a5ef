"""Sessions that other programs keep in SQLite: AutoGen Studio's database, and the log that AutoGen v0.2 writes.

The files are opened read-only. What is returned names the sessions; their messages are read when they are processed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from afterword.facts.scopes import Scope
from afterword.pipeline.errors import SourceInvalid
from afterword.pipeline.intake import Saved

_HEADER = b"SQLite format 3\0"
_STUDIO = {"message", "session", "run"}
_LOG = {"events", "agents"}
_UNNAMED_CALL = "llm_call_event"
_PARTS = ("content", "tool_calls", "tool_responses", "function_call")

Message = dict[str, Any]


def is_database(path: Path) -> bool:
    """Whether the file is a SQLite database that holds anything, sound or not."""
    try:
        with closing(_opened(path)) as db:
            version: int = db.execute("PRAGMA schema_version").fetchone()[0]
            return version > 0
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return True
        # Only here: whoever closes a database file himself drops every lock that this process has on it.
        return _has_header(path)


def _has_header(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False


def sessions_in(path: Path, scope: Scope | None) -> list[Saved]:
    """Return the sessions of an AutoGen Studio database or of a v0.2 log.

    Studio knows whose a session is (`user_id`), a log does not: it needs `scope`, which overrides Studio's word. A
    session is called `studio-<id>`, or by the log's own id.

    Raises `SourceInvalid` where it is another database, cannot be read, or does not say whose its sessions are.
    """
    try:
        with closing(_opened(path)) as db:
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables >= _STUDIO:
                return list(_studio_sessions(db, path, scope))
            if tables >= _LOG:
                return list(_logged_sessions(db, path, scope))
    except sqlite3.Error as error:
        raise SourceInvalid(f"{path} cannot be read as a database ({type(error).__name__})") from None
    raise SourceInvalid(f"{path} is neither an AutoGen Studio database nor a log of AutoGen v0.2; export its sessions")


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    return db


def _studio_sessions(db: sqlite3.Connection, path: Path, scope: Scope | None) -> Iterator[Saved]:
    last = dict(db.execute("SELECT session_id, max(created_at) FROM message GROUP BY session_id").fetchall())
    for key, user in db.execute("SELECT id, user_id FROM session ORDER BY id").fetchall():
        if scope is None and not user:
            raise SourceInvalid(f"{path}: session {key} has no user; say whose with --user or --scope")
        written_at = _instant(last.get(key))
        state = partial(_studio_messages, path, key)
        yield Saved(scope or Scope.user(user), f"studio-{key}", state=state, file_time=written_at)


def _studio_messages(path: Path, session: int) -> list[Message]:
    """Return the messages of a session: of each run its task, what its result holds, and what was stored besides."""
    found: list[Message] = []
    with closing(_opened(path)) as db:
        columns = {row["name"] for row in db.execute("PRAGMA table_info(message)")}
        rows = db.execute("SELECT * FROM message WHERE session_id = ? ORDER BY id", (session,)).fetchall()
        runs = db.execute("SELECT * FROM run WHERE session_id = ? ORDER BY id", (session,)).fetchall()
    by_run: dict[object, list[Message]] = {}
    for row in rows:
        message = _message(_parsed(row["config"]), row["created_at"])
        by_run.setdefault(row["run_id"] if "run_id" in columns else None, []).extend(message)
    found += by_run.pop(None, [])
    for run in runs:
        result = _parsed(run["team_result"]).get("task_result")
        told = result.get("messages") if isinstance(result, dict) else None
        complete = [one for item in told or [] for one in _message(item, run["created_at"])]
        stored = by_run.pop(run["id"], [])
        task = _message(_parsed(run["task"]), run["created_at"])
        found += _united(task, _united(complete, stored))
    return found + [one for rest in by_run.values() for one in rest]


def _message(config: object, created_at: str | None) -> list[Message]:
    """Return a stored message in the shape in which AgentChat saves it, none where it holds no words."""
    if not isinstance(config, dict) or not config.get("content"):
        return []
    kind = "LLMCallEventMessage" if config.get("source") == _UNNAMED_CALL else "TextMessage"
    return [{"type": kind, **config, "created_at": config.get("created_at") or _iso(created_at)}]


def _united(first: Sequence[Message], second: Sequence[Message]) -> list[Message]:
    """Return what either list holds, copies once: those that only the first holds stand first."""
    known = [_identity(one) for one in second]
    if not known:
        return list(first)
    return [one for one in first if _identity(one) not in known] + list(second)


def _identity(message: Mapping[str, Any]) -> tuple[str, str]:
    return str(message.get("source")), json.dumps(message.get("content"), sort_keys=True)


def _logged_sessions(db: sqlite3.Connection, path: Path, scope: Scope | None) -> Iterator[Saved]:
    if scope is None:
        raise SourceInvalid(f"{path} is a log that names no user: say whose it is with --user or --scope")
    query = "SELECT session_id, count(*) FROM agents WHERE session_id IS NOT NULL GROUP BY session_id"
    for session, _ in db.execute(query).fetchall():
        messages = _logged(db, session)
        if messages:
            said_at = _instant(messages[-1]["created_at"])
            yield Saved(scope, str(session), state=partial(_logged_messages, path, session), file_time=said_at)


def _logged_messages(path: Path, session: str) -> list[Message]:
    with closing(_opened(path)) as db:
        return _logged(db, session)


def _logged(db: sqlite3.Connection, session: str) -> list[Message]:
    """Return what the agents of one session received, each message once, in order.

    A group chat's manager passes on to everyone what one has said: copies that follow each other are one message.
    """
    query = """
        SELECT json_state, timestamp FROM events WHERE event_name = 'received_message' AND (
            SELECT session_id FROM agents WHERE agents.agent_id = events.source_id
            AND agents.timestamp <= events.timestamp ORDER BY agents.id DESC LIMIT 1) = ?
        ORDER BY events.id"""
    found: list[Message] = []
    for state, timestamp in db.execute(query, (session,)):
        message = _received(_parsed(state), timestamp)
        if message is not None and not (found and _said(found[-1]) == _said(message)):
            found.append(message)
    return found


def _received(event: Mapping[str, Any], timestamp: str | None) -> Message | None:
    message = event.get("message")
    if isinstance(message, str):
        message = {"content": message}
    if not isinstance(message, dict):
        return None
    name = message.get("name") or event.get("sender")
    return {"role": "user", **message, "name": name, "created_at": _iso(timestamp)}


def _said(message: Mapping[str, Any]) -> tuple[str, str]:
    return str(message["name"]), json.dumps([message.get(part) for part in _PARTS], sort_keys=True)


def _parsed(text: object) -> dict[str, Any]:
    """Return the JSON object of a column, empty where it holds none."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _instant(text: object) -> datetime | None:
    """Return a column's time; neither program writes a zone, and both mean UTC."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found and found.tzinfo is None else found


def _iso(text: object) -> str | None:
    found = _instant(text)
    return found.isoformat() if found else None
