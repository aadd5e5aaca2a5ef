"""Who of a session is the owner of the scope."""

from __future__ import annotations

import pytest

from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.transcripts import Role, Transcript, Turn, find_owners, is_generic_name


def spoken_by(*names: str, assumed: tuple[str, ...] = ()) -> Transcript:
    turns = tuple(Turn(place, name, Role.HUMAN, "Hello.") for place, name in enumerate(names, start=1))
    return Transcript(turns, "test", humans=tuple(dict.fromkeys(names)), assumed=assumed)


def _owners(transcript: Transcript, scope: Scope) -> tuple[str, ...]:
    return find_owners(transcript.humans, transcript.assumed, scope)


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
    assert _owners(spoken_by(*humans), Scope.user(scope_id)) == expected


@pytest.mark.parametrize(
    ("scope_id", "humans", "assumed", "expected"),
    [
        ("lena", ("crm_export",), ("crm_export",), ()),
        ("lena", ("user", "crm_export"), ("crm_export",), ("user",)),
        ("lena", ("user", "crm_export", "ticker"), ("crm_export", "ticker"), ("user",)),
        ("lena", ("Maeve", "crm_export"), ("crm_export",), ("Maeve",)),
        ("mira", ("mira",), ("mira",), ("mira",)),
        ("mira.s", ("Mira", "user"), ("Mira",), ("Mira", "user")),
        ("priya", ("priya", "jonas"), ("priya", "jonas"), ("priya",)),
        ("lena", ("priya", "jonas"), ("priya", "jonas"), ()),
        ("mira", ("Kofi", "mira"), ("mira",), ("mira",)),
    ],
)
def test_who_only_may_be_a_person_is_the_owner_if_the_scope_names_them(
    scope_id: str, humans: tuple[str, ...], assumed: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """Whatever speaks to a team from outside may be a feed: what it says of itself is not the owner's."""
    assert _owners(spoken_by(*humans, assumed=assumed), Scope.user(scope_id)) == expected


@pytest.mark.parametrize("kind", [ScopeKind.TEAM, ScopeKind.PROJECT, ScopeKind.AGENT])
def test_nobody_is_the_owner_of_what_does_not_speak(kind: ScopeKind) -> None:
    """A team is not one of its members, even where it bears her name."""
    assert _owners(spoken_by("priya"), Scope("default", kind, "priya")) == ()


def test_generic_names_are_known_in_any_letter_case() -> None:
    assert is_generic_name("User_Proxy")
    assert not is_generic_name("Ursula")
