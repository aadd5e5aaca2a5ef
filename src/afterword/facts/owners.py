"""Decide which speakers of a session are the owner of the scope. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.words import folded

HUMAN_NAMES = frozenset({"user", "human", "user_proxy", "userproxy"})
"""Speaker names that say "a person" but not who. All of them in one session are the same person."""

_SHORTEST_PART = 2


def is_generic(name: str) -> bool:
    """Return whether a speaker's name says only that it is a person."""
    return folded(name) in HUMAN_NAMES


def find_owners(humans: Sequence[str], assumed_names: Sequence[str], scope: Scope) -> tuple[str, ...]:
    """Return the speakers who are the owner of the scope, in the order of `humans`.

    In a user's scope the only person of a session is the owner under every name used there. Among several people the
    owner is the person whom the scope's id names, and every generic name; if the id fits two people, it names nobody.
    A team, a project or an agent does not speak: its scope has no owner among the speakers, and people's statements
    about themselves are stored under their own names.

    A speaker who is only assumed to be a person (`assumed_names`) is the owner only if the scope's id names them,
    and never prevents somebody else from being the owner.
    """
    if scope.kind is not ScopeKind.USER:
        return ()
    assumed = {folded(name) for name in assumed_names}
    generic = {folded(name) for name in humans if is_generic(name)}
    known = {folded(name) for name in humans} - assumed - generic
    named = _named_by(scope.id, known) or _named_by(scope.id, assumed)
    taken = known if len(known) <= 1 and named.isdisjoint(assumed) else named
    return tuple(name for name in humans if folded(name) in taken | generic)


def _named_by(scope_id: str, people: set[str]) -> set[str]:
    """Return the person whom the whole id or one of its parts names; nobody if two people fit."""
    whole = folded(scope_id)
    if whole in people:
        return {whole}
    parts = {part for part in re.split(r"[\W_]+", whole) if len(part) >= _SHORTEST_PART}
    fitting = {person for person in people if person in parts or _parts(person) <= parts}
    return fitting if len(fitting) == 1 else set()


def _parts(person: str) -> set[str]:
    """Return the words of a name, or the name itself if it has none, because an empty set would fit every id."""
    return {part for part in re.split(r"[\W_]+", person) if part} or {person}


PERSONAL_WORDS = frozenset(
    "i i'm i've i'll i'd me my mine myself we we're our ours us user user's he he's him his she she's her hers they "
    "they're their them ich mir mich mein meine meinen meiner meinem wir uns unser unsere er sie sein seine ihr ihre "
    "nutzer nutzerin".split()
)
"""Words by which a text speaks of somebody."""


def is_about_somebody(text: str, owner: str) -> bool:
    """Whether a text speaks of its writer, of the owner, or of a person that it calls he, she or they."""
    words = {word.strip('.,;:!?"()[]').replace("\u2019", "'") for word in folded(text).split()}
    names = set(folded(owner).split())
    return bool(words & PERSONAL_WORDS) or names <= words | {word.removesuffix("'s") for word in words}
