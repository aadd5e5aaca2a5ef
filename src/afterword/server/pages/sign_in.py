"""Who is signed in: a key or a one-time link becomes a session of the browser, kept in this process alone."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from afterword import ApiKey, Scope

SIGNED_IN_S = 12 * 3600
"""How long a browser stays signed in."""
LINK_S = 600
"""How long a one-time link may be used."""
MOST_SIGNED_IN = 10_000
MOST_OF_ONE_KEY = 20
"""How many browsers one key signs in; the one that signed in first is signed out. So no key can sign out others."""
LOCAL_KEY_ID = "inspect"
"""Stands for `afterword inspect` in the audit, where no key is used."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whoever looks at the pages: the holder of a key, or with `is_local` the operator of this machine.

    The operator opens every memory of the store, without a stored key.
    """

    key: ApiKey
    is_local: bool = False

    @classmethod
    def local(cls) -> Visitor:
        """Return the operator of this machine."""
        key = ApiKey(LOCAL_KEY_ID, "afterword inspect", "default", None, False, True, created_at=datetime.now(UTC))
        return cls(key, is_local=True)

    def opens(self, scope: Scope) -> bool:
        """Whether the visitor may see the memory of a scope."""
        return self.is_local or self.key.opens(scope)

    @property
    def tenant(self) -> str | None:
        """The tenant that an administrator sees; None for the operator, who sees all."""
        return None if self.is_local else self.key.tenant

    def key_for(self, scope: Scope | None) -> ApiKey:
        """Return the key under which a change of a scope is audited."""
        return replace(self.key, tenant=scope.tenant) if self.is_local and scope is not None else self.key


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A signed-in browser. `csrf` stands in every form, so that no other site can send one."""

    id: str = field(repr=False)
    visitor: Visitor
    csrf: str = field(repr=False)
    expires: float


@dataclass(slots=True)
class BrowserSessions:
    """The signed-in browsers and the unused one-time links of a process."""

    clock: Callable[[], float] = time.time
    _sessions: dict[str, BrowserSession] = field(default_factory=dict, repr=False)
    _links: dict[str, tuple[float, str]] = field(default_factory=dict, repr=False)

    def begin(self, visitor: Visitor) -> BrowserSession:
        """Sign a visitor in. The id is always a new one, so that nobody can plant a known id before."""
        self._discard_expired()
        # Sessions are stored in the order in which they began.
        of_key = [session.id for session in self._sessions.values() if session.visitor.key.id == visitor.key.id]
        for session_id in of_key[: 1 - MOST_OF_ONE_KEY]:
            self.end(session_id)
        if len(self._sessions) >= MOST_SIGNED_IN:
            self.end(next(iter(self._sessions)))
        expires = self.clock() + SIGNED_IN_S
        session = BrowserSession(secrets.token_urlsafe(32), visitor, secrets.token_urlsafe(24), expires)
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str | None) -> BrowserSession | None:
        """Return a session that has not expired, None otherwise."""
        session = self._sessions.get(session_id or "")
        return session if session is not None and session.expires > self.clock() else None

    def end(self, session_id: str | None) -> None:
        """Sign out."""
        self._sessions.pop(session_id or "", None)

    def make_link(self, path: str) -> str:
        """Return the secret of a link that signs the operator in once and leads to `path`."""
        secret = secrets.token_urlsafe(32)
        self._links[secret] = (self.clock() + LINK_S, path)
        return secret

    def use_link(self, secret: str) -> str | None:
        """Return where an unused link leads, and use it up; None if it is unknown, used or expired."""
        expires, path = self._links.pop(secret, (0.0, ""))
        return path if expires > self.clock() else None

    def _discard_expired(self) -> None:
        now = self.clock()
        for session in [session for session in self._sessions.values() if session.expires <= now]:
            del self._sessions[session.id]
