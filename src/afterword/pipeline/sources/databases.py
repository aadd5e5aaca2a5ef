"""Sessions that other programs keep in SQLite: AutoGen Studio, the log of AutoGen v0.2, and the OpenAI Agents SDK.

The files are opened read-only. Only the sessions are listed here. Their messages are read when they are processed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from afterword.facts.local_time import at_offset, offset_seconds
from afterword.facts.scopes import Scope
from afterword.pipeline.errors import SourceInvalid
from afterword.pipeline.intake import Saved

_FILE_HEADER = b"SQLite format 3\0"
_STUDIO_TABLES = {"message", "session", "run"}
_LOG_TABLES = {"events", "agents"}
_SDK_TABLES = {"agent_sessions", "agent_messages"}
_UNNAMED_CALL = "llm_call_event"
_CONTENT_PARTS = ("content", "tool_calls", "tool_responses", "function_call")

Message = dict[str, Any]


def is_sqlite_database(path: Path) -> bool:
    """Whether the file is a SQLite database that is not empty. It may be damaged."""
    try:
        with closing(_open_read_only(path)) as database:
            return int(database.execute("PRAGMA schema_version").fetchone()[0]) > 0
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return True
        # Last, because closing a plain handle of a database file drops all locks that this process has on the file.
        with suppress(OSError), path.open("rb") as file:
            return file.read(len(_FILE_HEADER)) == _FILE_HEADER
        return False


def sessions_in_database(path: Path, scope: Scope | None) -> list[Saved]:
    """Return the sessions of an AutoGen Studio database, of a v0.2 log, or of a `SQLiteSession` of the Agents SDK.

    Studio stores the user of a session (`user_id`). The others do not, so they need `scope`, which also overrides the
    user that Studio stores. The session id is `studio-<id>`, or the id in the log or in the database of the SDK.

    Raises `SourceInvalid` if the file is another database or cannot be read, or if no user is known.
    """
    try:
        with closing(_open_read_only(path)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables >= _STUDIO_TABLES:
                return list(_studio_sessions(database, path, scope))
            if tables >= _LOG_TABLES:
                return list(_logged_sessions(database, path, scope))
            if tables >= _SDK_TABLES:
                return list(_sdk_sessions(database, path, scope))
    except sqlite3.Error as error:
        raise SourceInvalid(f"{path} cannot be read as a database ({type(error).__name__})") from None
    raise SourceInvalid(
        f"{path} is neither a database of AutoGen Studio or of the OpenAI Agents SDK nor a log of AutoGen v0.2; export "
        "its sessions"
    )


def _open_read_only(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    return database


def _studio_sessions(database: sqlite3.Connection, path: Path, scope: Scope | None) -> Iterator[Saved]:
    last = dict(database.execute("SELECT session_id, max(created_at) FROM message GROUP BY session_id").fetchall())
    for key, user in database.execute("SELECT id, user_id FROM session ORDER BY id").fetchall():
        if scope is None and not user:
            raise SourceInvalid(f"{path}: session {key} has no user; say whose with --user or --scope")
        yield Saved(
            scope or Scope.user(user),
            f"studio-{key}",
            state=partial(_studio_messages, path, key),
            file_time=_instant(last.get(key)),
        )


def _studio_messages(path: Path, session: int) -> list[Message]:
    """Return the messages of a session, run by run: its task, its result, and its other stored messages."""
    with closing(_open_read_only(path)) as database:
        columns = {row["name"] for row in database.execute("PRAGMA table_info(message)")}
        rows = database.execute("SELECT * FROM message WHERE session_id = ? ORDER BY id", (session,)).fetchall()
        runs = database.execute("SELECT * FROM run WHERE session_id = ? ORDER BY id", (session,)).fetchall()
    by_run: dict[object, list[Message]] = {}
    for row in rows:
        message = _agentchat_messages(_json_object(row["config"]), row["created_at"])
        by_run.setdefault(row["run_id"] if "run_id" in columns else None, []).extend(message)
    messages = by_run.pop(None, [])
    for run in runs:
        result = _json_object(run["team_result"]).get("task_result")
        configs = result.get("messages") if isinstance(result, dict) else None
        complete = [message for config in configs or [] for message in _agentchat_messages(config, run["created_at"])]
        task = _agentchat_messages(_json_object(run["task"]), run["created_at"])
        messages += _merged_messages(task, _merged_messages(complete, by_run.pop(run["id"], [])))
    return messages + [message for other_messages in by_run.values() for message in other_messages]


def _agentchat_messages(config: object, created_at: str | None) -> list[Message]:
    """Return a stored message in the form of AgentChat, in a list that is empty if the message has no content."""
    if not isinstance(config, dict) or not config.get("content"):
        return []
    kind = "LLMCallEventMessage" if config.get("source") == _UNNAMED_CALL else "TextMessage"
    return [{"type": kind, **config, "created_at": config.get("created_at") or _iso(created_at)}]


def _merged_messages(first: Sequence[Message], second: Sequence[Message]) -> list[Message]:
    """Return the messages of both lists. A message of the first list is left out if the second one has it, too."""
    known = {_message_identity(message) for message in second}
    return [*(message for message in first if _message_identity(message) not in known), *second]


def _message_identity(message: Mapping[str, Any]) -> tuple[str, str]:
    return str(message.get("source")), json.dumps(message.get("content"), sort_keys=True)


def _logged_sessions(database: sqlite3.Connection, path: Path, scope: Scope | None) -> Iterator[Saved]:
    if scope is None:
        raise SourceInvalid(f"{path} is a log that names no user: say whose it is with --user or --scope")
    query = "SELECT session_id, count(*) FROM agents WHERE session_id IS NOT NULL GROUP BY session_id"
    for session, _ in database.execute(query).fetchall():
        if messages := _logged_messages(path, session):
            said_at = _instant(messages[-1]["created_at"])
            yield Saved(scope, str(session), state=partial(_logged_messages, path, session), file_time=said_at)


def _logged_messages(path: Path, session: str) -> list[Message]:
    """Return the messages that the agents of one session received, each once, in order.

    The manager of a group chat forwards each message to everyone: consecutive copies are one message.
    """
    query = """
        SELECT json_state, timestamp FROM events WHERE event_name = 'received_message' AND (
            SELECT session_id FROM agents WHERE agents.agent_id = events.source_id
            AND agents.timestamp <= events.timestamp ORDER BY agents.id DESC LIMIT 1) = ?
        ORDER BY events.id"""
    messages: list[Message] = []
    with closing(_open_read_only(path)) as database:
        rows = database.execute(query, (session,)).fetchall()
    for state, timestamp in rows:
        message = _received_message(_json_object(state), timestamp)
        if message is not None and not (messages and _name_and_content(messages[-1]) == _name_and_content(message)):
            messages.append(message)
    return messages


def _received_message(event: Mapping[str, Any], timestamp: str | None) -> Message | None:
    message = event.get("message")
    if isinstance(message, str):
        message = {"content": message}
    if not isinstance(message, dict):
        return None
    return {
        "role": "user",
        **message,
        "name": message.get("name") or event.get("sender"),
        "created_at": _iso(timestamp),
    }


def _sdk_sessions(database: sqlite3.Connection, path: Path, scope: Scope | None) -> Iterator[Saved]:
    if scope is None:
        raise SourceInvalid(f"{path} names no user of its sessions: say whose they are with --user or --scope")
    query = (
        "SELECT session_id, max(created_at) FROM agent_messages WHERE typeof(session_id) = 'text' "
        "GROUP BY session_id ORDER BY min(id)"
    )
    for session, written_at in database.execute(query).fetchall():
        yield Saved(scope, session, state=partial(_sdk_messages, path, session), file_time=_instant(written_at))


def _sdk_messages(path: Path, session: str) -> list[Message]:
    """Return the items of a session, with their times, including those of branches that were abandoned."""
    query = "SELECT message_data, created_at FROM agent_messages WHERE session_id = ? ORDER BY id"
    with closing(_open_read_only(path)) as database:
        rows = database.execute(query, (session,)).fetchall()
    return [{**_json_object(text), "created_at": _iso(created_at)} for text, created_at in rows]


def _name_and_content(message: Mapping[str, Any]) -> tuple[str, str]:
    return str(message["name"]), json.dumps([message.get(part) for part in _CONTENT_PARTS], sort_keys=True)


def _json_object(text: object) -> dict[str, Any]:
    """Return the JSON object that a column contains, or an empty one if it contains none."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _instant(text: object) -> datetime | None:
    """Return the time of a column. These programs write UTC without a zone."""
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
        return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at and at_offset(at, offset_seconds(at))
    except (ValueError, OverflowError):
        return None


def _iso(text: object) -> str | None:
    at = _instant(text)
    return at.isoformat() if at else None
