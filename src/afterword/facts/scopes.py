"""Scopes. A scope identifies whose memory is read or written, and every query requires one."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from afterword.errors import ScopeInvalid
from afterword.normal_form import composed, decomposed

DEFAULT_TENANT = "default"
LONGEST_NAME = 255


class ScopeKind(StrEnum):
    """What a scope stands for."""

    USER = "user"
    TEAM = "team"
    PROJECT = "project"
    AGENT = "agent"


def _check_name(part: str, name: str, *, slash_allowed: bool) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ScopeInvalid(f"the {part} of a scope is empty; name whose memory it is, for example user 'lena'")
    if len(name) > LONGEST_NAME:
        raise ScopeInvalid(f"the {part} of a scope has {len(name)} characters; at most {LONGEST_NAME} fit")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        raise ScopeInvalid(f"the {part} of a scope holds control characters or lone surrogates: {name!a}")
    if "/" in name and not slash_allowed:
        raise ScopeInvalid(f"the {part} of a scope may not hold a slash: {name!r}")


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Identifies a memory by tenant, kind and id, in Unicode's form NFC. Letter case and spaces are significant.

    Raises `ScopeInvalid` for empty names, control characters, lone surrogates, and names over 255 characters.
    """

    tenant: str
    kind: ScopeKind
    id: str

    def __post_init__(self) -> None:
        _check_name("tenant", self.tenant, slash_allowed=False)
        _check_name("id", self.id, slash_allowed=True)
        object.__setattr__(self, "tenant", composed(self.tenant))
        object.__setattr__(self, "id", composed(self.id))

    def __str__(self) -> str:
        return f"{self.tenant}/{self.kind}/{self.id}"

    @classmethod
    def user(cls, name: str, tenant: str = DEFAULT_TENANT) -> Scope:
        """Return the scope of one user."""
        return cls(tenant, ScopeKind.USER, name)

    @classmethod
    def from_stored(cls, tenant: str, kind: str, name: str) -> Scope:
        """Return the scope of these stored names as they are. An older store may hold names that are not NFC."""
        scope = cls(tenant, ScopeKind(kind), name)
        object.__setattr__(scope, "tenant", tenant)
        object.__setattr__(scope, "id", name)
        return scope

    @property
    def user_id(self) -> str | None:
        """The id if the scope is that of a user, else None."""
        return self.id if self.kind is ScopeKind.USER else None

    @property
    def normal(self) -> Scope:
        """The scope with its names in NFC."""
        return Scope(self.tenant, self.kind, self.id)

    @property
    def other_forms(self) -> tuple[Scope, ...]:
        """The scope with its names in NFD, under which an older store may hold it; none if that is the same."""
        form = Scope.from_stored(decomposed(self.tenant), self.kind, decomposed(self.id))
        return () if form == self else (form,)

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Return the scope that `tenant/kind/id` names; the id may itself hold slashes.

        Raises `ScopeInvalid` where a part is missing or the kind is unknown.
        """
        parts = text.split("/", 2)
        if len(parts) != 3:
            raise ScopeInvalid(f"{text!r} is no scope; write tenant/kind/id, for example default/user/lena")
        tenant, kind, name = parts
        if kind not in set(ScopeKind):
            raise ScopeInvalid(f"{kind!r} is no kind of scope; use one of {', '.join(ScopeKind)}")
        return cls(tenant, ScopeKind(kind), name)
