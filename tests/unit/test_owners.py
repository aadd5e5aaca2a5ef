"""Who of a session is the owner of the scope."""

from __future__ import annotations

import pytest

from afterword.extractors.owners import is_generic, owners
from afterword.store.scopes import Scope, ScopeKind
from afterword.store.transcripts import Role, Transcript, Turn


def spoken_by(*names: str) -> Transcript:
    turns = tuple(Turn(place, name, Role.HUMAN, "Hello.") for place, name in enumerate(names, start=1))
    return Transcript(turns, "test", humans=tuple(dict.fromkeys(names)))


@pytest.mark.parametrize(
    ("scope_id", "humans", "expected"),
    [
        ("lena", ("user",), ("user",)),
        ("lena", ("Kofi",), ("Kofi",)),
        ("lena", ("user", "user_proxy"), ("user", "user_proxy")),
        ("lena", ("Maeve", "user"), ("Maeve", "user")),
        ("lena", ("Maeve", "MAEVE"), ("Maeve", "MAEVE")),
        ("priya", ("priya", "jonas"), ("priya",)),
        ("priya.k", ("Priya", "jonas"), ("Priya",)),
        ("priya@example.org", ("jonas", "priya"), ("priya",)),
        ("lena", ("priya", "jonas"), ()),
        ("lena", ("priya", "jonas", "user"), ("user",)),
        ("priya", ("priya", "jonas", "Human"), ("priya", "Human")),
        ("priya.jonas", ("priya", "jonas"), ()),
        ("lena", (), ()),
    ],
)
def test_the_owner_is_the_one_person_or_the_one_whom_the_scope_names(
    scope_id: str, humans: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert owners(spoken_by(*humans), Scope.user(scope_id)) == expected


@pytest.mark.parametrize("kind", [ScopeKind.TEAM, ScopeKind.PROJECT, ScopeKind.AGENT])
def test_nobody_is_the_owner_of_what_does_not_speak(kind: ScopeKind) -> None:
    """A team is not one of its members, even where it bears her name."""
    assert owners(spoken_by("priya"), Scope("default", kind, "priya")) == ()


def test_generic_names_are_known_in_any_letter_case() -> None:
    assert is_generic("User_Proxy")
    assert not is_generic("Ursula")
