"""Which session each message that a live agent or team holds was said in.

One agent may be recorded under several session ids, or for several users, while it still holds the messages of before.
These were said in the session that was recorded then, or were left out of it on purpose. So they are left out of every
other session. Nothing of this is stored: another process, or another copy of the state, does not know it.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from afterword.agents.live_agents import agents_in
from afterword.agents.saved_blocks import is_saved_block
from afterword.facts.scopes import Scope
from afterword.privacy.state_keys import EXAMPLE_MARK

SessionName = tuple[Scope, str]
"""A session: its scope and its id."""
_Origins = frozenset[SessionName]
"""The sessions that a message was said in: several only if they were recorded at the same time."""
_Path = tuple[str, ...]
_SpeakerAndDigest = tuple[object, str]
_Value = TypeVar("_Value")

_NO_ORIGINS: _Origins = frozenset()
_THREAD, _BUFFER = "message_thread", "message_buffer"
_MESSAGE_LISTS = frozenset({"messages", "history", _THREAD, _BUFFER})
"""The keys of saved states under which lists of messages are stored."""
_TASK_KEYS = ("task", "facts", "plan")
"""What a manager stores beside its thread about the latest task."""


class _IdentityMap(Generic[_Value]):
    """A map from objects to values. Its keys are compared by identity, and it does not keep them alive.

    An object that takes no weak reference cannot be a key: `set` ignores it.
    """

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[object], _Value]] = {}

    def get(self, key: object, default: _Value) -> _Value:
        reference, value = self._values.get(id(key), (None, default))
        return value if reference is not None and reference() is key else default

    def set(self, key: object, value: _Value) -> None:
        number, values = id(key), self._values
        try:
            values[number] = weakref.ref(key, lambda _: values.pop(number, None)), value
        except TypeError:
            return


@dataclass(frozen=True, slots=True)
class _RecordedOrigins:
    """The origins of the messages in the state of one object, apart from messages that are objects themselves.

    `by_id` has the origins of messages with an id. `by_list` has those of the other messages, each with a digest, by
    the path of their list. `buffered` has the messages in the buffer of each member of a team, each as its speaker and
    a digest of its words: the member gets these messages with its next task, and then holds them in another form.
    """

    by_id: Mapping[str, _Origins] = field(default_factory=dict)
    by_list: Mapping[_Path, Sequence[tuple[str, _Origins]]] = field(default_factory=dict)
    buffered: Mapping[_Path, Sequence[tuple[_SpeakerAndDigest, _Origins]]] = field(default_factory=dict)


_origins_of_live_messages: _IdentityMap[_Origins] = _IdentityMap()
"""The origins of the messages in the model contexts of live agents."""
_recorded_origins: _IdentityMap[_RecordedOrigins] = _IdentityMap()
_sessions_in_progress: _IdentityMap[tuple[SessionName, ...]] = _IdentityMap()


@contextmanager
def session_in_progress(agent_or_team: object, name: SessionName) -> Iterator[None]:
    """Count what is said in the block as said in this session, even if another session saves it first."""
    agents = list(agents_in(agent_or_team))
    for agent in agents:
        _sessions_in_progress.set(agent, (*_sessions_in_progress.get(agent, ()), name))
    try:
        yield
    finally:
        for agent in agents:
            names = list(_sessions_in_progress.get(agent, ()))
            if name in names:
                names.remove(name)
            _sessions_in_progress.set(agent, tuple(names))


@dataclass(frozen=True, slots=True)
class _MessageList:
    """A list of messages in a saved state: their places and contents without memory blocks.

    `live` are the same messages in the model context of an agent; none if the list is not that of a known context.
    """

    path: _Path
    places: tuple[int, ...]
    messages: tuple[Mapping[str, Any], ...]
    live: tuple[object, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the messages; none unless all have one."""
        ids = tuple(message.get("id") for message in self.messages)
        return tuple(str(each) for each in ids) if all(isinstance(each, str) and each for each in ids) else ()


class MessagesInState:
    """The messages in the state that was just saved of a live agent or team."""

    def __init__(self, agent_or_team: object, state: Mapping[str, Any]) -> None:
        self._recorded = agent_or_team
        contexts = [context for agent in agents_in(agent_or_team) if (context := _context_messages(agent))]
        self._lists = [_message_list(path, messages, contexts) for path, messages in _message_lists_in(state)]

    def has_messages_of_other_sessions(self, names: Collection[SessionName]) -> bool:
        """Whether some message is known to be said in other sessions, and in none of these."""
        return any(self._places_of_other_sessions(each, names) for each in self._lists)

    def state_without_other_sessions(
        self, state: Mapping[str, Any], names: Collection[SessionName]
    ) -> Mapping[str, Any]:
        """Return the state without the messages that are known to be said in other sessions, and in none of these.

        `names` are the names that the recorded session has and had. Marked examples and memory blocks stay.
        """
        places = {each.path: places for each in self._lists if (places := self._places_of_other_sessions(each, names))}
        return _without_messages(state, (), places) if places else state

    def assign_new_messages(self, name: SessionName) -> None:
        """Record that messages without an origin were said in this session, and in all sessions that are open now."""
        opened = (names for agent in agents_in(self._recorded) for names in _sessions_in_progress.get(agent, ()))
        new = frozenset({name, *opened})
        self._store_origins([tuple(origins or new for origins in self._origins(each)) for each in self._lists])

    def assign_loaded_messages(self, name: SessionName) -> None:
        """Record that all the messages were loaded from this session."""
        self._store_origins([(frozenset({name}),) * len(each.messages) for each in self._lists])

    def _places_of_other_sessions(self, each: _MessageList, names: Collection[SessionName]) -> set[int]:
        origins = zip(each.places, self._origins(each), strict=True)
        return {place for place, sessions in origins if sessions and sessions.isdisjoint(names)}

    def _origins(self, each: _MessageList) -> list[_Origins]:
        recorded = _recorded_origins.get(self._recorded, _RecordedOrigins())
        if each.live:
            live_origins = [_origins_of_live_messages.get(message, _NO_ORIGINS) for message in each.live]
            origins = _with_origins_of_buffered(each, live_origins, recorded)
        elif each.ids:
            origins = [recorded.by_id.get(number, _NO_ORIGINS) for number in each.ids]
        else:
            origins = _origins_in_known_list(each, recorded.by_list.get(each.path, ()))
        for place, message in enumerate(each.messages):
            # A model refuses the result of a call without the call. So the two stay together.
            if place and message.get("type") == "FunctionExecutionResultMessage":
                origins[place] = origins[place - 1] or origins[place]
        return origins

    def _store_origins(self, origins: Sequence[Sequence[_Origins]]) -> None:
        by_id: dict[str, _Origins] = {}
        by_list: dict[_Path, list[tuple[str, _Origins]]] = {}
        buffered: dict[_Path, list[tuple[_SpeakerAndDigest, _Origins]]] = {}
        for each, of_list in zip(self._lists, origins, strict=True):
            if each.path[-1] == _BUFFER:
                buffered[each.path[:-1]] = list(zip(map(_speaker_and_digest, each.messages), of_list, strict=True))
            if each.live:
                for message, origins_of_message in zip(each.live, of_list, strict=True):
                    _origins_of_live_messages.set(message, origins_of_message)
            elif each.ids:
                by_id |= zip(each.ids, of_list, strict=True)
            else:
                by_list[each.path] = list(zip(map(_digest, each.messages), of_list, strict=True))
        _recorded_origins.set(self._recorded, _RecordedOrigins(by_id, by_list, buffered))


def _message_lists_in(value: object, path: _Path = ()) -> Iterator[tuple[_Path, list[Any]]]:
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if name in _MESSAGE_LISTS and isinstance(inner, list):
            yield (*path, name), inner
        else:
            yield from _message_lists_in(inner, (*path, str(name)))


def _context_messages(agent: object) -> list[tuple[BaseModel, dict[str, Any]]]:
    """Return the messages in the model context of an agent, each with its form in a saved state, without blocks."""
    messages = getattr(getattr(agent, "_model_context", None), "_messages", None)
    if not isinstance(messages, list):
        return []
    forms = [(message, message.model_dump()) for message in messages if isinstance(message, BaseModel)]
    return [(message, form) for message, form in forms if not is_saved_block(form)]


def _message_list(
    path: _Path, saved: Sequence[Any], contexts: list[list[tuple[BaseModel, dict[str, Any]]]]
) -> _MessageList:
    """Return the messages of a list in a saved state, with the same messages of a live context.

    The context is taken out of `contexts`.
    """
    places = [place for place, each in enumerate(saved) if isinstance(each, Mapping) and not is_saved_block(each)]
    messages = [saved[place] for place in places]
    # An agent that is still running may have got further messages meanwhile.
    fitting = (context for context in contexts if [form for _, form in context[: len(messages)]] == messages)
    context = next(fitting, []) if messages else []
    if context:
        contexts.remove(context)
    live = tuple(message for message, _ in context[: len(messages)])
    return _MessageList(path, tuple(places), tuple(messages), live)


def _origins_in_known_list(each: _MessageList, known: Sequence[tuple[str, _Origins]]) -> list[_Origins]:
    """Return the origins of messages without ids. They are known if the list only goes on since it was recorded."""
    is_continued = [_digest(message) for message in each.messages[: len(known)]] == [seen for seen, _ in known]
    origins = [origins_of_message for _, origins_of_message in known] if is_continued else []
    return origins + [_NO_ORIGINS] * (len(each.messages) - len(origins))


def _with_origins_of_buffered(
    each: _MessageList, origins: list[_Origins], recorded: _RecordedOrigins
) -> list[_Origins]:
    """Return the origins with those of messages that waited in the agent's buffer before they came into its context."""
    buffered = [
        entry for path, entries in recorded.buffered.items() if each.path[: len(path)] == path for entry in entries
    ]
    for place, message in enumerate(each.messages if buffered else ()):
        source, words = _speaker_and_digest(message)
        fitting = (index for index, (known, _) in enumerate(buffered) if known in ((source, words), (source, "")))
        if not origins[place] and (index := next(fitting, None)) is not None:
            origins[place] = buffered[index][1]
            del buffered[: index + 1]
    return origins


def _speaker_and_digest(message: Mapping[str, Any]) -> _SpeakerAndDigest:
    """Return the speaker of a message and a digest of its words.

    The digest of an object is "", because a context holds the object as some text.
    """
    content = message.get("content")
    return message.get("source"), "" if isinstance(content, Mapping) else _digest(content)


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _without_messages(value: Any, path: _Path, places: Mapping[_Path, Collection[int]]) -> Any:
    """Return a state, or a value in one, without the messages at these places of its lists."""
    if isinstance(value, list):
        return _remaining_messages(value, places.get(path, ()))
    if not isinstance(value, Mapping):
        return value
    state = {name: _without_messages(inner, (*path, str(name)), places) for name, inner in value.items()}
    if _has_lost_task(state, value):
        state |= {name: "" for name in _TASK_KEYS if name in state}
    return state


def _remaining_messages(messages: list[Any], left_out: Collection[int]) -> list[Any]:
    remaining = [each for place, each in enumerate(messages) if place not in left_out or EXAMPLE_MARK in each]
    # A block that no message follows was written in another session: what it tells may be forgotten since.
    is_new = any(not is_saved_block(each) and EXAMPLE_MARK not in each for each in remaining)
    return remaining if is_new or not left_out else [each for each in remaining if not is_saved_block(each)]


def _has_lost_task(state: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether the thread of a manager lost messages, and none of the others contains its latest task."""
    thread, task = state.get(_THREAD), state.get("task")
    if not isinstance(thread, list) or not isinstance(task, str) or len(thread) >= len(before[_THREAD]):
        return False
    return not any(task in str(message.get("content")) for message in thread if isinstance(message, Mapping))
