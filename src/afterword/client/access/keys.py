"""The keys of the service, for `Afterword.keys`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from afterword.client.arguments import Instant, instant, scope_of
from afterword.client.resources import Resources
from afterword.errors import ArgumentInvalid, KeyInvalid
from afterword.facts.scopes import DEFAULT_TENANT, Scope, ScopeKind
from afterword.store.access import keys
from afterword.store.access.keys import USE_IS_NOTED_AFTER, ApiKey
from afterword.store.transfer.fact_json import iso_instant

LONGEST_KEY = 200
"""No key is longer; a longer text is refused before it is hashed."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made. `secret` is the key itself: it is shown once and cannot be read again."""

    key: ApiKey
    secret: str

    def __repr__(self) -> str:
        return f"NewKey({self.key!r})"


def key_json(key: ApiKey) -> dict[str, Any]:
    """Return a key of the service, without the key itself."""
    return {
        "id": key.id,
        "name": key.name,
        "tenant": key.tenant,
        "scope": None if key.scope is None else str(key.scope),
        "read_only": key.is_read_only,
        "admin": key.is_admin,
        "created_at": iso_instant(key.created_at),
        "last_used_at": iso_instant(key.last_used_at),
        "expires_at": iso_instant(key.expires_at),
        "revoked_at": iso_instant(key.revoked_at),
    }


class Keys:
    """The keys of the service. Use it through `Afterword.keys`."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def create(
        self,
        *,
        user: str | None = None,
        scope: Scope | str | None = None,
        tenant: str | None = None,
        name: str = "",
        read_only: bool = False,
        admin: bool = False,
        expires_at: Instant | None = None,
    ) -> NewKey:
        """Make a key for the memory of a `user` of the default tenant, or of a `scope`, and return it.

        With `admin` the key also opens every memory of the tenant: that of the scope, else `tenant`. A `read_only` key
        changes nothing. The scope need not exist yet, and is not made. Raises `ArgumentInvalid` and `ScopeInvalid`.
        """
        if user is not None and scope is not None:
            raise ArgumentInvalid("name a user or a scope, not both")
        owner = Scope.user(user) if user is not None else None if scope is None else scope_of(scope)
        if owner is None and not admin:
            raise ArgumentInvalid("say whose memory the key opens: user or scope")
        chosen_tenant = tenant if tenant is not None else owner.tenant if owner is not None else DEFAULT_TENANT
        Scope(chosen_tenant, ScopeKind.USER, "anybody")  # checks the name of the tenant
        if owner is not None and chosen_tenant != owner.tenant:
            raise ArgumentInvalid(f"{owner} does not belong to the tenant {chosen_tenant!r}")
        now, expiry = self._resources.now(), None if expires_at is None else instant(expires_at)
        if expiry is not None and expiry <= now:
            raise ArgumentInvalid(f"the key would expire at {expiry.isoformat()}, which is past")
        key_id, secret = keys.new_secret()
        key = ApiKey(
            key_id, " ".join(name.split()), chosen_tenant, owner, read_only, admin, created_at=now, expires_at=expiry
        )
        await (await self._resources.store()).write(lambda transaction: keys.add_key(transaction, key, secret))
        return NewKey(key, secret)

    async def list(self) -> tuple[ApiKey, ...]:
        """Return every key, also those that are revoked or expired, oldest first."""
        return tuple(await (await self._resources.store()).read(keys.read_keys))

    async def get(self, key_id: str) -> ApiKey:
        """Return the key of this id if it may still be used. Raises `KeyInvalid`, and `NotFound` for another id."""
        key = await (await self._resources.store()).read(lambda transaction: keys.read_key(transaction, key_id))
        key.check(self._resources.now())
        return key

    async def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key for good, and return it. Raises `NotFound`."""
        at = self._resources.now()
        return await (await self._resources.store()).write(lambda transaction: keys.revoke_key(transaction, key_id, at))

    async def verify(self, secret: str) -> ApiKey:
        """Return the key that is presented. Raises `KeyInvalid` if it is unknown, revoked or expired.

        Its last use is recorded, at most every ten minutes.
        """
        if not 0 < len(secret) <= LONGEST_KEY:
            raise KeyInvalid("this is no key of this store; `afterword keys create` makes one")
        store, at = await self._resources.store(), self._resources.now()
        key = await store.read(lambda transaction: keys.find_key(transaction, secret))
        if key is None:
            raise KeyInvalid("this is no key of this store; `afterword keys create` makes one")
        key.check(at)
        if _is_use_noted(key, at):
            return key
        key_id = key.id
        await store.write(lambda transaction: keys.note_use(transaction, key_id, at), lasting=False)
        return key


def _is_use_noted(key: ApiKey, at: datetime) -> bool:
    return key.last_used_at is not None and at - key.last_used_at < USE_IS_NOTED_AFTER
