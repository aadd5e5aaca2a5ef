"""Webhooks: checking their addresses, finding what waits for a person's decision, and sending posts.

An address must use HTTPS and be on the public internet, unless a setting allows more. Posts are signed and follow no
redirect. A failed post is sent again after pauses that grow.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from sqlalchemy import func
from sqlmodel import Session, col, select

from afterword import telemetry
from afterword.errors import ArgumentInvalid
from afterword.facts.findings import FindingStatus
from afterword.facts.scopes import Scope
from afterword.pipeline.background.leases import JobResult
from afterword.store import reviews, runs
from afterword.store.access import webhooks
from afterword.store.access.tables import WebhookPostRow, WebhookRow
from afterword.store.access.webhooks import Webhook, WebhookEvent, WebhookPost
from afterword.store.database.engine import Store
from afterword.store.findings.stored_findings import read_findings
from afterword.store.forgetting.forgotten_statements import read_erase_requests_in_force
from afterword.store.ledger import RunStatus
from afterword.store.limits import RetryPolicy
from afterword.store.reading.fact_lists import FactsToCheck
from afterword.store.reading.view_cache import view_cache_of
from afterword.store.scope_rows import scope_key, scope_of_row
from afterword.store.tables import RunRow, ScopeRow

_log = telemetry.logs(__name__)

WEBHOOKS = "webhooks"
"""The name of the periodic job that sends posts."""
POSTS_PER_ROUND = 50
"""The most posts that one webhook gets in one round of the job."""
TIMEOUTS_PER_ROUND = 3
"""After the time of so many timeouts, a round begins no further post to a webhook, so that a slow receiver does not
delay the other webhooks."""
LONGEST_HEAD_BYTES = 16_384
MOST_SCOPES = 200
"""The most scopes that are examined in one round. The others follow in the next one."""
OVERLAP = 20
"""How many earlier runs are examined again, because PostgreSQL may commit a run after runs with greater numbers."""
_NAT64 = ip_network("64:ff9b::/96")
# IPv6 addresses for IPv4 addresses of the local network (RFC 8215). Older versions of Python take them for public ones.
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
_LONGEST_URL = 2000


class AddressRefused(Exception):
    """No post may be sent to an address. The message says why, and does not contain the address."""


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Which addresses, besides those on the public internet, a post may go to.

    `allow_loopback` allows http and https to this machine, `allow_private` https to private networks.
    """

    allow_loopback: bool = False
    allow_private: bool = False

    def check_ip_address(self, address: str, *, is_encrypted: bool) -> None:
        """Raise `AddressRefused` for an IP address that is not allowed."""
        ip = _embedded_ipv4(ip_address(address))
        if ip.is_loopback:
            if not self.allow_loopback:
                raise AddressRefused("it is an address of this machine; set webhooks.allow_loopback to allow it")
        elif not is_encrypted:
            raise AddressRefused("http is allowed only to this machine; use https")
        elif not _is_routable(ip):
            raise AddressRefused("it is no address of one machine on a network")
        elif not self.allow_private and (not ip.is_global or ip in _LOCAL_NAT64):
            raise AddressRefused("it is an address of a private network; set webhooks.allow_private to allow it")


def _is_routable(ip: IPv4Address | IPv6Address) -> bool:
    """Whether an address may belong to one machine on a network, public or private."""
    return not (ip.is_multicast or ip.is_unspecified or ip.is_reserved or ip.is_link_local)


@dataclass(frozen=True, slots=True)
class WebhookUrl:
    """The parts of a webhook's URL. `is_encrypted` means https."""

    is_encrypted: bool
    host: str
    port: int
    path: str

    async def resolve_addresses(self, rules: AddressRules) -> list[str]:
        """Return the IP addresses of the host. Raises `AddressRefused` if one is not allowed or there is none.

        The caller must connect to one of these and not to the name, which might resolve to another address later.
        """
        try:
            resolved = await asyncio.get_running_loop().getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError:
            raise AddressRefused("its host has no address") from None
        addresses = [str(entry[4][0]).partition("%")[0] for entry in resolved]
        for address in addresses:
            rules.check_ip_address(address, is_encrypted=self.is_encrypted)
        return addresses


def parse_webhook_url(url: str, rules: AddressRules) -> WebhookUrl:
    """Return the parts of a webhook's URL. Raises `ArgumentInvalid` for one that can never be posted to."""
    parts, port = _split_url(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ArgumentInvalid("the URL of a webhook begins with https://")
    if parts.username is not None or parts.fragment:
        raise ArgumentInvalid("the URL of a webhook has no user and no fragment")
    is_encrypted = parts.scheme == "https"
    if not is_encrypted and not rules.allow_loopback:
        raise ArgumentInvalid(
            "the URL of a webhook begins with https://; with webhooks.allow_loopback, http to this machine is allowed"
        )
    _check_host(parts.hostname, rules, is_encrypted=is_encrypted)
    return WebhookUrl(is_encrypted, parts.hostname, port or _default_port(is_encrypted), _path_and_query(parts))


def _default_port(is_encrypted: bool) -> int:
    return 443 if is_encrypted else 80


def _path_and_query(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _split_url(url: str) -> tuple[SplitResult, int | None]:
    has_blanks = any(character <= " " or character == "\x7f" for character in url)
    if len(url) > _LONGEST_URL or not url.isascii() or has_blanks:
        raise ArgumentInvalid(f"the URL of a webhook has at most {_LONGEST_URL} ASCII characters and no spaces")
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        raise ArgumentInvalid("this is no URL") from None


def _check_host(host: str, rules: AddressRules, *, is_encrypted: bool) -> None:
    """Raise `ArgumentInvalid` if a host is an IP address that is not allowed. Names are looked up before each post."""
    try:
        ip_address(host)
    except ValueError:
        return
    try:
        rules.check_ip_address(host, is_encrypted=is_encrypted)
    except AddressRefused as error:
        raise ArgumentInvalid(f"nothing is posted to {host}: {error}") from None


def _embedded_ipv4(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address stands for, if it stands for one."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or ip


@dataclass(frozen=True, slots=True)
class SendingRules:
    """How posts are sent: the allowed addresses, the timeout, and the pauses before a failed post is sent again."""

    addresses: AddressRules = field(default_factory=AddressRules)
    timeout_s: float = 10.0
    retries: RetryPolicy = field(default_factory=lambda: RetryPolicy(tries=8))


@dataclass(frozen=True, slots=True)
class WebhookSender:
    """Sends the posts that are due. Only one process may do so at a time: use it in a job with a lease."""

    store: Store
    rules: SendingRules
    now: Callable[[], datetime]
    stop: Callable[[], str | None] = lambda: None

    async def send_due_posts(self) -> JobResult | None:
        """Send the posts that are due, and return how many were sent. One failing webhook does not delay the others."""
        hooks = await self.store.read(webhooks.read_webhooks)
        if not hooks:
            return None
        await announce_waiting_reviews(self.store, self.now())
        failures = Counter[str]()
        sent = sum(await asyncio.gather(*(self._send_posts_of(hook, failures) for hook in hooks)))
        await self.store.write(partial(webhooks.discard_sent_posts, at=self.now()), lasting=False)
        return JobResult({"posts sent": sent}, failures)

    async def _send_posts_of(self, hook: Webhook, failures: Counter[str]) -> int:
        """Send the posts of one webhook, in their order, up to the first that fails; return how many were sent."""
        sent, began_s = 0, time.monotonic()
        for post in await self.store.read(
            partial(webhooks.read_due_posts, webhook_id=hook.id, at=self.now(), most=POSTS_PER_ROUND)
        ):
            is_over = time.monotonic() - began_s > TIMEOUTS_PER_ROUND * self.rules.timeout_s
            if is_over or self.stop() is not None:
                break
            if failure := await self.send_post(hook, post):
                failures[failure] += 1
                break
            sent += 1
        return sent

    async def send_post(self, hook: Webhook, post: WebhookPost) -> str | None:
        """Send one post and record the result. Return why it failed, or None if it was accepted."""
        _, secret = await self.store.read(partial(webhooks.read_webhook_and_secret, webhook_id=hook.id))
        at = self.now()
        failure = await self._post(hook, post, secret, at)
        next_try_at = self.rules.retries.next_try_at(post.tries + 1, at)
        await self.store.write(
            partial(webhooks.note_post_try, post_id=post.id, at=at, failure=failure, next_try_at=next_try_at),
            lasting=False,
        )
        if failure is not None:
            _log.warning("post %s to webhook %s failed: %s", post.id, hook.id, failure)
        return failure

    async def _post(self, hook: Webhook, post: WebhookPost, secret: str, at: datetime) -> str | None:
        """Send one post. Return why it failed, or None if it was accepted."""
        body = post_body(post, hook.tenant)
        try:
            async with asyncio.timeout(self.rules.timeout_s):
                url = parse_webhook_url(hook.url, self.rules.addresses)
                addresses = await url.resolve_addresses(self.rules.addresses)
                status = await _send_request(url, addresses[0], body, post_headers(secret, post, body, at))
            return None if 200 <= status < 300 else f"the answer was {status}"
        except TimeoutError:
            return f"no answer within {self.rules.timeout_s:g} s"
        except (AddressRefused, ArgumentInvalid) as error:
            return str(error)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            return f"no connection ({type(error).__name__})"


def post_body(post: WebhookPost, tenant: str) -> bytes:
    """Return the body of a post: ids and counts as JSON. Every try sends the same bytes."""
    content = {"id": post.id, "event": post.event, "at": post.created_at.isoformat(), "tenant": tenant, **post.content}
    return json.dumps(content, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode("ascii")


def post_signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the HMAC-SHA256 over timestamp, a dot and body, in hexadecimal."""
    return hmac.new(secret.encode("ascii"), timestamp.encode("ascii") + b"." + body, hashlib.sha256).hexdigest()


def post_headers(secret: str, post: WebhookPost, body: bytes, at: datetime) -> dict[str, str]:
    """Return the headers of a post that is sent at an instant."""
    timestamp = str(int(at.timestamp()))
    return {
        "Content-Type": "application/json",
        "User-Agent": "afterword",
        "Afterword-Post": post.id,
        "Afterword-Event": post.event,
        "Afterword-Timestamp": timestamp,
        "Afterword-Signature": f"v1={post_signature(secret, timestamp, body)}",
    }


async def _send_request(url: WebhookUrl, address: str, body: bytes, headers: dict[str, str]) -> int:
    """Send a request to a checked IP address, and return the status of the answer. The rest is not read."""
    context = ssl.create_default_context() if url.is_encrypted else None
    reader, writer = await asyncio.open_connection(
        address,
        url.port,
        ssl=context,
        server_hostname=url.host if url.is_encrypted else None,
        limit=LONGEST_HEAD_BYTES,
    )
    try:
        writer.write(_request_head(url, {**headers, "Content-Length": str(len(body))}) + body)
        await writer.drain()
        version, _, following = (await reader.readuntil(b"\n")).partition(b" ")
        if not version.startswith(b"HTTP/1."):
            raise ValueError("this is no HTTP")
        return int(following[:3])
    finally:
        writer.transport.abort()


def _request_head(url: WebhookUrl, headers: dict[str, str]) -> bytes:
    host = f"[{url.host}]" if ":" in url.host else url.host
    host += "" if url.port == _default_port(url.is_encrypted) else f":{url.port}"
    fields = {"Host": host, "Connection": "close", **headers}
    lines = [f"POST {url.path} HTTP/1.1", *(f"{name}: {text}" for name, text in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


async def announce_waiting_reviews(store: Store, at: datetime) -> None:
    """Queue a post for each scope in which something new waits for a person. Only scopes with new runs are examined."""
    last_seen, scopes = await store.read(_changed_scopes)
    if last_seen is None:
        return
    for scope in scopes:
        view = await view_cache_of(store).view(store, scope, at)
        facts = await asyncio.to_thread(getattr, view.lists, "facts_to_check")
        waiting = await store.read(partial(_waiting_ids, scope=scope, facts=facts, at=at))
        if any(waiting.values()):
            await store.write(partial(_announce_new_items, scope=scope, waiting=waiting, at=at))
    await store.write(partial(_mark_runs_seen, run_id=last_seen))


def _changed_scopes(transaction: Session) -> tuple[int | None, list[Scope]]:
    """Return the id of the last run to examine, and the scopes of the new runs up to it. The id is None without any."""
    hooks = [row for row in transaction.exec(select(WebhookRow)) if WebhookEvent.REVIEW_WAITS in row.events]
    if not hooks:
        return None, []
    seen = min(hook.seen_run_id for hook in hooks)
    if seen == transaction.exec(select(func.max(RunRow.id))).one():
        return None, []
    query = select(RunRow.id, RunRow.scope_id).where(col(RunRow.id) > seen - OVERLAP).order_by(col(RunRow.id))
    last, scope_ids = 0, dict[int, None]()
    for run_id, scope_id in transaction.exec(query):
        if len(scope_ids) == MOST_SCOPES and scope_id not in scope_ids:
            break
        last, scope_ids[scope_id] = run_id or 0, None
    rows = transaction.exec(select(ScopeRow).where(col(ScopeRow.id).in_(scope_ids)))
    tenants = {hook.tenant for hook in hooks}
    return last, [scope_of_row(row) for row in rows if row.tenant in tenants]


def _waiting_ids(transaction: Session, scope: Scope, facts: FactsToCheck, at: datetime) -> dict[str, list[str]]:
    """Return the ids of the items of a scope that wait for a person's decision, by kind."""
    findings = read_findings(transaction, scope)
    return {
        "contests": [contest.id for contest in reviews.read_contests(transaction, scope, at=at)],
        "held_runs": [f"run:{run.id}" for run in runs.read_runs(transaction, scope, statuses=[RunStatus.HELD])],
        "erase_requests": [asked.id for asked in read_erase_requests_in_force(transaction, scope)],
        "unclear_names": [f"name:{fact.id}" for fact in facts.pending],
        "findings": [f"finding:{each.id}" for each in findings if each.status_at(at) is FindingStatus.WAITING],
        "dependents": [f"dependent:{each.fact.id}" for each in facts.dependents],
    }


def _announce_new_items(transaction: Session, scope: Scope, waiting: dict[str, list[str]], at: datetime) -> None:
    """Queue a post if an item waits that no earlier post of the scope has listed."""
    ids = sorted(id_ for of_kind in waiting.values() for id_ in of_kind)
    query = select(WebhookPostRow.content).where(
        WebhookPostRow.scope_id == scope_key(transaction, scope), WebhookPostRow.event == WebhookEvent.REVIEW_WAITS
    )
    known = {id_ for content in transaction.exec(query) for id_ in content["items"]}
    if set(ids) <= known:
        return
    digest = hashlib.sha256("\n".join(ids).encode()).hexdigest()[:20]
    content = {"scope": str(scope), "waiting": {kind: len(of_kind) for kind, of_kind in waiting.items()}, "items": ids}
    webhooks.announce(transaction, WebhookEvent.REVIEW_WAITS, scope, f"review/{scope}/{digest}", content, at)


def _mark_runs_seen(transaction: Session, run_id: int) -> None:
    for row in transaction.exec(select(WebhookRow)):
        row.seen_run_id = max(row.seen_run_id, run_id)
