"""Which speakers of a session are the owner of the scope. Pure."""

from __future__ import annotations

import re

from afterword.extractors.readers.people import is_generic
from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.transcripts import Transcript
from afterword.facts.words import folded

__all__ = ["is_generic", "owners"]

_SHORTEST_PART = 2


def owners(transcript: Transcript, scope: Scope) -> tuple[str, ...]:
    """Return the speakers who are the owner of the scope, in the order of `transcript.humans`.

    In a user's scope the one person of a session is the owner under every name used there. Among several people the
    owner is the one whom the scope's id names, and whoever speaks under a generic name; where two could be meant,
    nobody is taken by name. A team, a project or an agent does not speak: there nobody is the owner, and what people
    say of themselves is filed under their own names.

    Who is taken for a person only because they spoke from outside of a team (`transcript.assumed`) is the owner only
    where the scope's id names them, and stands in nobody's way.
    """
    if scope.kind is not ScopeKind.USER:
        return ()
    assumed = {folded(name) for name in transcript.assumed}
    generic = {folded(name) for name in transcript.humans if is_generic(name)}
    known = {folded(name) for name in transcript.humans} - assumed - generic
    named = _named_by(scope.id, known) or _named_by(scope.id, assumed)
    taken = known if len(known) <= 1 and named.isdisjoint(assumed) else named
    return tuple(name for name in transcript.humans if folded(name) in taken | generic)


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
