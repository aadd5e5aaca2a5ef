"""Sending posts to webhooks: signed, without following redirects, and again with growing pauses."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import ssl
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from afterword import telemetry
from afterword.errors import ArgumentInvalid
from afterword.pipeline.background.leases import JobResult
from afterword.pipeline.background.waiting_reviews import announce_waiting_reviews
from afterword.pipeline.background.webhook_addresses import (
    AddressRefused,
    AddressRules,
    WebhookUrl,
    parse_webhook_url,
)
from afterword.store.access import webhooks
from afterword.store.access.webhooks import Webhook, WebhookPost
from afterword.store.database.engine import Store
from afterword.store.retry_schedule import Retries

logger = telemetry.logs(__name__)

WEBHOOKS = "webhooks"
"""The name of the job."""
POSTS_PER_ROUND = 50
"""So many posts one webhook gets in one round."""
TIMEOUTS_PER_ROUND = 3
"""A round of one webhook begins no post after so many timeouts, so that a slow receiver does not hold up the others."""
LONGEST_HEAD_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class SendingRules:
    """How posts are sent: to which addresses, within which time, and when again."""

    addresses: AddressRules = field(default_factory=AddressRules)
    timeout_s: float = 10.0
    retries: Retries = field(default_factory=lambda: Retries(tries=8))


@dataclass(frozen=True, slots=True)
class WebhookSender:
    """Sends what waits. Only one process may do so at a time: use it in a job with a lease."""

    store: Store
    rules: SendingRules
    now: Callable[[], datetime]
    stop: Callable[[], str | None] = lambda: None

    async def send(self) -> JobResult | None:
        """Send every post that is due. A webhook that fails does not hold up the others."""
        hooks = await self.store.read(webhooks.read_webhooks)
        if not hooks:
            return None
        await announce_waiting_reviews(self.store, self.now())
        failures = Counter[str]()
        sent = sum(await asyncio.gather(*(self._send_to(hook, failures) for hook in hooks)))
        await self.store.write(partial(webhooks.discard_sent_posts, at=self.now()), lasting=False)
        return JobResult({"posts sent": sent}, failures)

    async def _send_to(self, hook: Webhook, failures: Counter[str]) -> int:
        """Send the posts of one webhook, in their order, up to the first that fails; return how many were sent."""
        sent, began_s = 0, time.monotonic()
        due = partial(webhooks.due_posts, webhook_id=hook.id, at=self.now(), most=POSTS_PER_ROUND)
        for post in await self.store.read(due):
            is_over = time.monotonic() - began_s > TIMEOUTS_PER_ROUND * self.rules.timeout_s
            if is_over or self.stop() is not None:
                break
            failure = await self.try_post(hook, post)
            if failure is not None:
                failures[failure] += 1
                break
            sent += 1
        return sent

    async def try_post(self, hook: Webhook, post: WebhookPost) -> str | None:
        """Send one post and record the result; return why it failed, None if it did not."""
        _, secret = await self.store.read(partial(webhooks.read_webhook, webhook_id=hook.id))
        at = self.now()
        body = post_body(post, hook.tenant)
        try:
            async with asyncio.timeout(self.rules.timeout_s):
                url = parse_webhook_url(hook.url, self.rules.addresses)
                addresses = await url.addresses(self.rules.addresses)
                status = await _post(url, addresses[0], body, post_headers(secret, post, body, at))
            failure = None if 200 <= status < 300 else f"the answer was {status}"
        except TimeoutError:
            failure = f"no answer within {self.rules.timeout_s:g} s"
        except (AddressRefused, ArgumentInvalid) as error:
            failure = str(error)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            failure = f"no connection ({type(error).__name__})"
        next_try_at = self.rules.retries.next_try_at(post.tries + 1, at)
        record = partial(webhooks.note_try, post_id=post.id, at=at, failure=failure, next_try_at=next_try_at)
        await self.store.write(record, lasting=False)
        if failure is not None:
            logger.warning("post %s to webhook %s failed: %s", post.id, hook.id, failure)
        return failure


def post_body(post: WebhookPost, tenant: str) -> bytes:
    """Return the body of a post: ids and counts as JSON. Every try sends the same bytes."""
    content = {"id": post.id, "event": post.event, "at": post.created_at.isoformat(), "tenant": tenant, **post.content}
    return json.dumps(content, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode("ascii")


def signature(secret: str, timestamp: str, body: bytes) -> str:
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
        "Afterword-Signature": f"v1={signature(secret, timestamp, body)}",
    }


async def _post(url: WebhookUrl, address: str, body: bytes, headers: dict[str, str]) -> int:
    """Send a request to an address that was checked, and return the status of the answer. The rest is not read."""
    context = ssl.create_default_context() if url.is_encrypted else None
    reader, writer = await asyncio.open_connection(
        address,
        url.port,
        ssl=context,
        server_hostname=url.host if url.is_encrypted else None,
        limit=LONGEST_HEAD_BYTES,
    )
    try:
        lines = [f"POST {url.path} HTTP/1.1", f"Host: {url.host_header}", "Connection: close"]
        lines += [f"{name}: {text}" for name, text in headers.items()]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
        writer.write(head.encode("ascii") + body)
        await writer.drain()
        version, _, following = (await reader.readuntil(b"\n")).partition(b" ")
        if not version.startswith(b"HTTP/1."):
            raise ValueError("this is no HTTP")
        return int(following[:3])
    finally:
        writer.transport.abort()
