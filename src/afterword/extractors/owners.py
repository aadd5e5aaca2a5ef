"""Which speakers of a session are the owner of the scope. Pure."""

from __future__ import annotations

import re

from afterword.store.assertions import folded
from afterword.store.scopes import Scope, ScopeKind
from afterword.store.transcripts import Transcript

GENERIC_NAMES = frozenset({"user", "human", "user_proxy", "userproxy"})
"""Speaker names that say "a person", not who; all of them in one session are one person."""

_SHORTEST_PART = 2


def is_generic(name: str) -> bool:
    """Return whether a speaker's name says only that it is a person."""
    return folded(name) in GENERIC_NAMES


def owners(transcript: Transcript, scope: Scope) -> tuple[str, ...]:
    """Return the speakers who are the owner of the scope, in the order of `transcript.humans`.

    In a user's scope the one person of a session is the owner under every name used there. Among several people the
    owner is the one whom the scope's id names, and whoever speaks under a generic name; where two could be meant,
    nobody is taken by name. A team, a project or an agent does not speak: there nobody is the owner, and what people
    say of themselves is filed under their own names.
    """
    if scope.kind is not ScopeKind.USER:
        return ()
    proper = {folded(name) for name in transcript.humans if not is_generic(name)}
    if len(proper) <= 1:
        return transcript.humans
    named = _named_by(scope.id, proper)
    return tuple(name for name in transcript.humans if folded(name) in named or is_generic(name))


def _named_by(scope_id: str, people: set[str]) -> set[str]:
    """Return the person whom the id names, whole or by one of its parts; nobody where two fit."""
    whole = folded(scope_id)
    if whole in people:
        return {whole}
    parts = {part for part in re.split(r"[\W_]+", whole) if len(part) >= _SHORTEST_PART}
    fitting = {person for person in people if person in parts or _parts(person) <= parts}
    return fitting if len(fitting) == 1 else set()


def _parts(person: str) -> set[str]:
    """Return the words of a name, the name itself where it has none, so that an empty set never fits."""
    return {part for part in re.split(r"[\W_]+", person) if part} or {person}
