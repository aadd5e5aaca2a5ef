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
_Owners = frozenset[SessionName]
"""The sessions that a message was said in: several only if they were recorded at the same time."""
_Path = tuple[str, ...]
_Words = tuple[object, str]
_Value = TypeVar("_Value")

_NONE: _Owners = frozenset()
_THREAD, _BUFFER = "message_thread", "message_buffer"
_LISTS = frozenset({"messages", "history", _THREAD, _BUFFER})
"""The keys of saved states under which lists of messages are stored."""
_OF_TASK = ("task", "facts", "plan")
"""What a manager stores beside its thread about the latest task."""


class _ByIdentity(Generic[_Value]):
    """Values for objects, which are told apart by identity and not kept alive. Some objects cannot have a value."""

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
class _Notes:
    """What is known of the messages in the state of one object, apart from those that are objects themselves.

    `of_ids` are the owners of messages that have an id. `of_lists` are those of the other messages, by the path of the
    list, each with a digest. `waiting` are the messages in the buffer of each member of a team: it gets them with its
    next task, and then holds them in another form. Of each there are the speaker and a digest of the words.
    """

    of_ids: Mapping[str, _Owners] = field(default_factory=dict)
    of_lists: Mapping[_Path, Sequence[tuple[str, _Owners]]] = field(default_factory=dict)
    waiting: Mapping[_Path, Sequence[tuple[_Words, _Owners]]] = field(default_factory=dict)


_said_in: _ByIdentity[_Owners] = _ByIdentity()
"""The owners of the messages in the model contexts of live agents."""
_notes: _ByIdentity[_Notes] = _ByIdentity()
_open_sessions: _ByIdentity[tuple[SessionName, ...]] = _ByIdentity()


@contextmanager
def open_session(agent_or_team: object, name: SessionName) -> Iterator[None]:
    """Let what is said in the block count as said in this session too, if another one saves it first."""
    agents = list(agents_in(agent_or_team))
    for agent in agents:
        _open_sessions.set(agent, (*_open_sessions.get(agent, ()), name))
    try:
        yield
    finally:
        for agent in agents:
            names = list(_open_sessions.get(agent, ()))
            if name in names:
                names.remove(name)
            _open_sessions.set(agent, tuple(names))


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


class HeldMessages:
    """The messages in the state that was just saved of a live agent or team."""

    def __init__(self, agent_or_team: object, state: Mapping[str, Any]) -> None:
        self._recorded = agent_or_team
        contexts = [context for agent in agents_in(agent_or_team) if (context := _live_messages(agent))]
        self._lists = [_message_list(path, messages, contexts) for path, messages in _lists_in(state)]

    def are_of_others(self, names: Collection[SessionName]) -> bool:
        """Whether a message was said in other sessions than these alone."""
        return any(self._places_of_others(each, names) for each in self._lists)

    def of_session(self, state: Mapping[str, Any], names: Collection[SessionName]) -> Mapping[str, Any]:
        """Return the state without the messages that were said in other sessions alone. `names` are those of this one.

        The state may have marks of examples, which stay, as memory blocks do.
        """
        places = {each.path: places for each in self._lists if (places := self._places_of_others(each, names))}
        return _without(state, (), places) if places else state

    def note(self, name: SessionName) -> None:
        """Note that the messages that no session has had yet were said in this one, and in those that are open now."""
        opened = (names for agent in agents_in(self._recorded) for names in _open_sessions.get(agent, ()))
        new = frozenset({name, *opened})
        self._write([tuple(owners or new for owners in self._owners(each)) for each in self._lists])

    def note_loaded(self, name: SessionName) -> None:
        """Note that all the messages were loaded from this session."""
        self._write([(frozenset({name}),) * len(each.messages) for each in self._lists])

    def _places_of_others(self, each: _MessageList, names: Collection[SessionName]) -> set[int]:
        owners = zip(each.places, self._owners(each), strict=True)
        return {
            place for place, owners_of_message in owners if owners_of_message and owners_of_message.isdisjoint(names)
        }

    def _owners(self, each: _MessageList) -> list[_Owners]:
        notes = _notes.get(self._recorded, _Notes())
        if each.live:
            owners = _with_waiting(each, [_said_in.get(message, _NONE) for message in each.live], notes)
        elif each.ids:
            owners = [notes.of_ids.get(number, _NONE) for number in each.ids]
        else:
            known = notes.of_lists.get(each.path, ())
            is_continued = [_digest(message) for message in each.messages[: len(known)]] == [seen for seen, _ in known]
            owners = [owners_of_message for _, owners_of_message in known] if is_continued else []
            owners += [_NONE] * (len(each.messages) - len(owners))
        for place, message in enumerate(each.messages):
            # A model refuses the result of a call without the call. So the two stay together.
            if place and message.get("type") == "FunctionExecutionResultMessage":
                owners[place] = owners[place - 1] or owners[place]
        return owners

    def _write(self, owners: Sequence[Sequence[_Owners]]) -> None:
        of_ids: dict[str, _Owners] = {}
        of_lists: dict[_Path, list[tuple[str, _Owners]]] = {}
        waiting: dict[_Path, list[tuple[_Words, _Owners]]] = {}
        for each, of_list in zip(self._lists, owners, strict=True):
            if each.path[-1] == _BUFFER:
                waiting[each.path[:-1]] = list(zip(map(_words, each.messages), of_list, strict=True))
            if each.live:
                for message, owners_of_message in zip(each.live, of_list, strict=True):
                    _said_in.set(message, owners_of_message)
            elif each.ids:
                of_ids |= zip(each.ids, of_list, strict=True)
            else:
                of_lists[each.path] = list(zip(map(_digest, each.messages), of_list, strict=True))
        _notes.set(self._recorded, _Notes(of_ids, of_lists, waiting))


def _lists_in(value: object, path: _Path = ()) -> Iterator[tuple[_Path, list[Any]]]:
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if name in _LISTS and isinstance(inner, list):
            yield (*path, name), inner
        else:
            yield from _lists_in(inner, (*path, str(name)))


def _live_messages(agent: object) -> list[tuple[BaseModel, dict[str, Any]]]:
    """Return the messages in the model context of an agent, each with its form in a saved state, without blocks."""
    messages = getattr(getattr(agent, "_model_context", None), "_messages", None)
    if not isinstance(messages, list):
        return []
    forms = [(message, message.model_dump()) for message in messages if isinstance(message, BaseModel)]
    return [(message, form) for message, form in forms if not is_saved_block(form)]


def _message_list(
    path: _Path, saved: Sequence[Any], contexts: list[list[tuple[BaseModel, dict[str, Any]]]]
) -> _MessageList:
    """Return a list of messages, with the context that it was saved from, which is taken out of `contexts`."""
    places = [place for place, each in enumerate(saved) if isinstance(each, Mapping) and not is_saved_block(each)]
    messages = [saved[place] for place in places]
    # An agent that is still running may have got further messages meanwhile.
    fitting = (context for context in contexts if [form for _, form in context[: len(messages)]] == messages)
    context = next(fitting, []) if messages else []
    if context:
        contexts.remove(context)
    live = tuple(message for message, _ in context[: len(messages)])
    return _MessageList(path, tuple(places), tuple(messages), live)


def _with_waiting(each: _MessageList, owners: list[_Owners], notes: _Notes) -> list[_Owners]:
    """Return the owners of messages in a context, also of those that have waited in the buffer of the agent before."""
    waiting = [entry for path, entries in notes.waiting.items() if each.path[: len(path)] == path for entry in entries]
    for place, message in enumerate(each.messages if waiting else ()):
        source, words = _words(message)
        fitting = (index for index, (known, _) in enumerate(waiting) if known in ((source, words), (source, "")))
        if not owners[place] and (index := next(fitting, None)) is not None:
            owners[place] = waiting[index][1]
            del waiting[: index + 1]
    return owners


def _words(message: Mapping[str, Any]) -> _Words:
    """Return the speaker of a message and a digest of its words, "" for an object: a context has it as some text."""
    content = message.get("content")
    return message.get("source"), "" if isinstance(content, Mapping) else _digest(content)


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _without(value: Any, path: _Path, places: Mapping[_Path, Collection[int]]) -> Any:
    """Return a state, or a value in one, without the messages at these places of its lists."""
    if isinstance(value, list):
        left_out = places.get(path, ())
        stays = [each for place, each in enumerate(value) if place not in left_out or EXAMPLE_MARK in each]
        # A block that no message follows was written in another session: what it tells may be forgotten since.
        is_new = any(not is_saved_block(each) and EXAMPLE_MARK not in each for each in stays)
        return stays if is_new or not left_out else [each for each in stays if not is_saved_block(each)]
    if not isinstance(value, Mapping):
        return value
    state = {name: _without(inner, (*path, str(name)), places) for name, inner in value.items()}
    thread, task = state.get(_THREAD), state.get("task")
    if isinstance(thread, list) and isinstance(task, str) and len(thread) < len(value[_THREAD]):
        is_said = any(task in str(message.get("content")) for message in thread if isinstance(message, Mapping))
        state |= {name: "" for name in _OF_TASK if name in state and not is_said}
    return state
