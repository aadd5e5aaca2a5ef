"""Which scope and which store is meant, and how a dump names them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import BaseModel
from sqlalchemy import make_url

from afterword.errors import ScopeInvalid, StoreError
from afterword.facts.scopes import Scope
from afterword.store.database.engine import Store, open_store
from afterword.store.database.urls import shown_url

STORE_VARIABLE = "AFTERWORD_STORE__URL"
_MASK = "***"


class FromEnvironment(BaseModel):
    """A store's URL that stands in an environment variable, for example because it holds a password."""

    env: str


@dataclass(frozen=True, slots=True)
class SharedStore:
    """A store that its owner opens when it is first needed, and closes. `url` is its address."""

    url: str
    open: Callable[[], Awaitable[Store]]


StoreReference = Store | SharedStore | FromEnvironment | str
"""An opened store, one that its owner opens, or the address of one."""


def named_scope(user: str | None, scope: Scope | str | None) -> Scope:
    """Return whose memory is meant. Raises `ScopeInvalid` unless exactly one of `user` and `scope` names it."""
    if (user is None) == (scope is None):
        raise ScopeInvalid("whose memory? give exactly one of user='lena' and scope='tenant/kind/id'")
    if user is not None:
        return Scope.user(user)
    return scope if isinstance(scope, Scope) else Scope.parse(str(scope))


def beside(scope: Scope, also: Collection[Scope | str]) -> tuple[Scope, ...]:
    """Return the scopes that are read beside one, in order and each once.

    Raises `ScopeInvalid` for one of another tenant: what one tenant knows is never told to another.
    """
    found = dict.fromkeys(one if isinstance(one, Scope) else Scope.parse(one) for one in also)
    for one in found:
        if one.tenant != scope.tenant:
            raise ScopeInvalid(f"{one} belongs to another tenant than {scope}; a memory reads one tenant")
    return tuple(one for one in found if one != scope)


def url_of(given: str | FromEnvironment | None) -> str | None:
    """Return the URL that is meant, None for the default. Raises `StoreError` where its variable is not set."""
    if not isinstance(given, FromEnvironment):
        return given
    url = os.environ.get(given.env)
    if not url:
        raise StoreError(f"the environment variable {given.env} is not set; it holds the URL of the store")
    return url


def reference(given: StoreReference | None) -> str | FromEnvironment | None:
    """Return what a dump says about the store: no password, and nothing that may hold one."""
    if given is None or isinstance(given, FromEnvironment):
        return given
    shown = given.shown_url if isinstance(given, Store) else shown_url(_address(given))
    url = make_url(shown)
    if url.get_backend_name() == "sqlite" or (url.password is None and not url.query):
        return shown
    set_there = os.environ.get(STORE_VARIABLE)
    if set_there and shown_url(set_there) == shown:
        return FromEnvironment(env=STORE_VARIABLE)
    # A password shows, masked too, only beside a user's name.
    masked = url.set(username=url.username or "user", password=_MASK, query={})
    return masked.render_as_string(hide_password=True)


def _address(given: SharedStore | str) -> str:
    return given.url if isinstance(given, SharedStore) else given


def referred(store: str | FromEnvironment | None) -> str | FromEnvironment | None:
    """Return the store that a dump means. Raises `StoreError` where its password was left out and is set nowhere."""
    if not isinstance(store, str) or f":{_MASK}@" not in store:
        return store
    if os.environ.get(STORE_VARIABLE):
        return FromEnvironment(env=STORE_VARIABLE)
    raise StoreError(f"the dumped memory holds no password ({store}): set {STORE_VARIABLE} to the URL of the store")


@asynccontextmanager
async def opened_store(given: StoreReference | None) -> AsyncIterator[Store]:
    """Give the store that is meant; one that is opened here is closed at the end. Raises `StoreError`."""
    if isinstance(given, Store | SharedStore):
        yield await given.open() if isinstance(given, SharedStore) else given
        return
    store = await open_store(url_of(given))
    try:
        yield store
    finally:
        await store.close()
