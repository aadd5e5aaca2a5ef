"""Reads and stores the messages of a session of Agent Framework, in the JSON form that the framework uses."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Any

from agent_framework import Message
from sqlmodel import Session

from afterword.agents.state_queue import GENERIC_SPEAKERS, store_and_queue_state
from afterword.errors import NotFound, StateConflict
from afterword.extractors.readers.agent_framework import SAID_AT
from afterword.facts.scopes import Scope
from afterword.facts.words import folded
from afterword.store import sessions
from afterword.store.database.engine import Store

COMPONENT = "AgentFrameworkSession"
"""The kind of component as which the sessions are stored."""
SUFFIX_FOR_USED_ID = " (agent framework)"
"""The suffix of a session id that an AutoGen agent has used already.

An application that has changed to Agent Framework may go on with the ids of its chats.
"""
KEPT_CONTENTS = frozenset({"text", "function_call", "function_result", "data", "uri"})

JsonMessage = dict[str, Any]


@dataclass(slots=True)
class SessionRecord:
    """The messages of one session so far. `session_id` is the id of the session in the store."""

    scope: Scope
    session_id: str
    messages: list[JsonMessage] = field(default_factory=list)

    async def save_and_queue(self, store: Store, humans: Collection[str]) -> None:
        """Store the messages, and queue the session for processing. Raises `StoreError`."""
        state = _session_state(self.session_id, self.messages)
        await store_and_queue_state(store, self.scope, self.session_id, state, component=COMPONENT, humans=humans)

    def merge_transcript(self, transcript: Sequence[JsonMessage]) -> None:
        """Insert the messages of a transcript that are new, each at its place. The transcript may be incomplete."""
        self.messages = _merged_messages(self.messages, transcript)

    def add_new_messages(self, incoming: Sequence[JsonMessage]) -> None:
        """Add the incoming messages that are new.

        A caller may send the whole transcript again, or repeat a question that was never answered.
        """
        if any(message["role"] != "user" for message in incoming):
            self.merge_transcript(incoming)
            return
        asked = _message_keys(self.messages)
        longest = next((size for size, (role, _) in enumerate(reversed(asked)) if role != "user"), len(asked))
        new = _message_keys(incoming)
        sizes = range(min(longest, len(new)), -1, -1)
        repeated = next(size for size in sizes if asked[len(asked) - size :] == new[:size])
        self.messages = [*self.messages, *incoming[repeated:]]


async def read_or_new_record(store: Store, scope: Scope, session_id: str) -> SessionRecord:
    """Return the record of a session with its stored messages. A new session has none. Raises `StoreError`."""

    def work(transaction: Session) -> SessionRecord:
        for name in (session_id, session_id + SUFFIX_FOR_USED_ID):
            try:
                state = sessions.load_state(transaction, scope, name, COMPONENT)
            except NotFound:
                return SessionRecord(scope, name)
            except StateConflict:
                continue
            return SessionRecord(scope, name, _messages_of_state(state))
        raise StateConflict(f"session {session_id!r} of {scope} was saved by another kind of agent")

    return await store.read(work)


def masked_messages(store: Store, messages: Sequence[JsonMessage]) -> list[JsonMessage]:
    """Return the messages as they are stored: without secrets, and without what was said off the record."""
    people = {message.get("author_name") or "user" for message in messages if message["role"] == "user"}
    return _messages_of_state(store.privacy.mask_state(_session_state("", messages), (*people, *GENERIC_SPEAKERS)))


def transcript_prefix_digests(messages: Sequence[JsonMessage]) -> list[str]:
    """Return for each answer a digest of the transcript up to it, the longest transcript first."""
    digests, running = [], sha256()
    for role, text in _message_keys(messages):
        if role in ("user", "assistant") and text:
            running.update(f"{role}\x1f{text}\x1e".encode())
            if role == "assistant":
                digests.append(running.hexdigest())
    return digests[::-1]


def text_of_message(message: Mapping[str, Any]) -> str:
    """Return the text of a message."""
    return "\n".join(content["text"] for content in message["contents"] if content.get("type") == "text")


def storable_message(message: Message, at: datetime, humans: Collection[str] | None) -> JsonMessage:
    """Return a message in the form in which it is stored.

    A message in the role of the user gets the role of an assistant unless its author is one of `humans` (None:
    anybody). Of pictures and files only the media type is stored.
    """
    # Values that JSON does not know, for example in the arguments of a call, are stored as text.
    plain: JsonMessage = json.loads(json.dumps(message.to_dict(), default=str))
    contents = (content for content in plain.get("contents", ()) if content.get("type") in KEPT_CONTENTS)
    properties = plain.get("additional_properties") or {}
    kept_properties = {name: properties[name] for name in ("_attribution", "_group") if name in properties}
    author, role = plain.get("author_name"), str(plain.get("role"))
    if role == "user" and humans is not None and folded(author or "user") not in humans:
        role, author = "assistant", author or "caller"
    return {
        "type": "message",
        "role": role,
        "contents": list(map(_kept_content, contents)),
        **({"author_name": author} if author else {}),
        "additional_properties": {**kept_properties, SAID_AT: at.isoformat()},
    }


def _kept_content(content: JsonMessage) -> JsonMessage:
    kind = content["type"]
    names = {
        "text": ("text",),
        "function_call": ("call_id", "name", "arguments"),
        "function_result": ("call_id", "result"),
    }.get(kind, ("media_type",))
    return {"type": kind, **{name: content[name] for name in names if content.get(name) is not None}}


def _merged_messages(known: Sequence[JsonMessage], incoming: Sequence[JsonMessage]) -> list[JsonMessage]:
    """Return the messages of both lists in order. A message that is in both lists is taken from `known`."""
    united: list[JsonMessage] = []
    matcher = SequenceMatcher(None, _message_keys(known), _message_keys(incoming), autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        united += known[start:end]
        if tag != "equal":
            united += incoming[new_start:new_end]
    return united


def _message_keys(messages: Sequence[JsonMessage]) -> list[tuple[str, str]]:
    return [
        (message["role"], text_of_message(message) or json.dumps(message["contents"], sort_keys=True))
        for message in messages
    ]


def _session_state(session_id: str, messages: Sequence[JsonMessage]) -> dict[str, Any]:
    kept_state = {"afterword": {"messages": list(messages)}}
    return {"type": "session", "session_id": session_id, "service_session_id": None, "state": kept_state}


def _messages_of_state(state: Mapping[str, Any]) -> list[JsonMessage]:
    messages: list[JsonMessage] = state["state"]["afterword"]["messages"]
    return list(messages)
