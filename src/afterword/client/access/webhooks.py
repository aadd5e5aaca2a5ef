"""Webhooks, for `Afterword.webhooks`: URLs to which a message is posted when something needs a person's attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlmodel import Session

from afterword.client.arguments import NameOrNames, chosen_members
from afterword.client.resources import Resources
from afterword.client.results import ProcessingReport
from afterword.client.type_checks import TypeCheckedMethods
from afterword.errors import AfterwordError, ArgumentInvalid, StoreError
from afterword.facts.scopes import DEFAULT_TENANT, Scope, ScopeKind
from afterword.json_form import JsonForm, Nullable
from afterword.pipeline.background.due_times import JobClock, Rhythm
from afterword.pipeline.background.leases import Job, attempt_job
from afterword.pipeline.background.webhook_sending import (
    WEBHOOKS,
    AddressRules,
    SendingRules,
    WebhookSender,
    parse_webhook_url,
)
from afterword.pipeline.batch import Failure
from afterword.setting_sections import WebhookOptions
from afterword.store.access import keys, webhooks
from afterword.store.access.webhooks import Webhook, WebhookEvent, WebhookPost, announce_failed_sessions
from afterword.store.database.engine import Store
from afterword.store.limits import RetryPolicy

MOST_POSTS = 100
"""How many posts of a webhook are listed at most."""
MOST_WEBHOOKS = 50
"""How many webhooks a tenant may have: each event is posted to all of them."""


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A new webhook. `secret` signs its posts. It is shown once and cannot be read again."""

    webhook: Webhook
    secret: str

    def __repr__(self) -> str:
        return f"NewWebhook({self.webhook!r})"


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """A webhook, and the numbers of its posts that are waiting, sent (within a week) and set aside."""

    webhook: Webhook
    posts: dict[str, int]


webhook_json: JsonForm[Webhook] = JsonForm(
    "Webhook",
    "A webhook, without its secret.",
    id=str,
    url=str,
    tenant=str,
    events=[str],
    created_at=datetime,
)
webhook_status_json: JsonForm[WebhookStatus] = JsonForm(
    "WebhookStatus",
    "A webhook, and how many of its posts are waiting, sent and set aside.",
    **webhook_json.parts_at("webhook"),
    posts={str: int},
)
new_webhook_json: JsonForm[NewWebhook] = JsonForm(
    "NewWebhook",
    "A new webhook. `secret` signs its posts, and is shown once.",
    **webhook_json.parts_at("webhook"),
    secret=str,
)
webhook_post_json: JsonForm[WebhookPost] = JsonForm(
    "WebhookPost",
    "A post to a webhook: its event, its state and its attempts.",
    id=str,
    event=str,
    created_at=datetime,
    state=str,
    tries=int,
    next_try_at=Nullable(datetime),
    sent_at=Nullable(datetime),
    failure=Nullable(str),
)


def webhook_sender(
    store: Store, options: WebhookOptions, now: Callable[[], datetime], stop: Callable[[], str | None] = lambda: None
) -> WebhookSender:
    """Return an object that sends waiting posts, as the settings describe."""
    retries = RetryPolicy(options.tries, options.first_pause_s, options.longest_pause_s)
    return WebhookSender(store, SendingRules(_address_rules(options), options.timeout_s, retries), now, stop)


def _address_rules(options: WebhookOptions) -> AddressRules:
    return AddressRules(allow_loopback=options.allow_loopback, allow_private=options.allow_private)


@asynccontextmanager
async def announcing_failures(resources: Resources, scopes: Iterable[Scope]) -> AsyncIterator[list[ProcessingReport]]:
    """Yield a list for reports. After the block, announce to webhooks the sessions that failed by these reports.

    Failures of a scope are announced once a day. If the block itself fails, each of the `scopes` counts as one failure.
    """
    reports = list[ProcessingReport]()
    try:
        yield reports
    except AfterwordError:
        await _announce_failures(resources, Counter(scopes))
        raise
    results = [processed.result for report in reports for processed in report.sessions]
    await _announce_failures(resources, Counter(result.scope for result in results if isinstance(result, Failure)))


async def _announce_failures(resources: Resources, failed: Counter[Scope]) -> None:
    for scope, failures in failed.items():
        # If the store does not answer, the failure cannot be stored for the webhooks.
        with suppress(StoreError):
            told = partial(announce_failed_sessions, scope=scope, failed_sessions=failures, at=resources.now())
            await resources.write(told)


class Webhooks(TypeCheckedMethods):
    """Creates, lists, tests and removes webhooks. Use it through `Afterword.webhooks`.

    With a `tenant`, a method sees only the webhooks of this tenant.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def add(self, url: str, *, events: NameOrNames = (), tenant: str = DEFAULT_TENANT) -> NewWebhook:
        """Create a webhook for events in the scopes of a tenant, and return it with its secret.

        `events` are one or several of "session set aside", "budget reached", "review waits" and "job failed"; by
        default all. Raises `ArgumentInvalid` for a URL that must not be posted to (one without https, or one of this
        machine or a private network), and if the tenant already has 50 webhooks.
        """
        Scope(tenant, ScopeKind.USER, "anybody")  # checks the name of the tenant
        parse_webhook_url(url, _address_rules(self._resources.settings.webhooks))
        chosen = chosen_members(WebhookEvent, events, "event") if events else frozenset(WebhookEvent)
        webhook_id, secret = keys.new_id_and_secret(webhooks.PREFIX)
        in_order = tuple(event for event in WebhookEvent if event in chosen)
        webhook = Webhook(webhook_id, url, tenant, in_order, self._resources.now())

        def add(transaction: Session) -> None:
            if len(webhooks.read_webhooks(transaction, tenant)) >= MOST_WEBHOOKS:
                raise ArgumentInvalid(f"the tenant {tenant!r} has {MOST_WEBHOOKS} webhooks already; remove one first")
            webhooks.add_webhook(transaction, webhook, secret)

        await self._resources.write(add)
        return NewWebhook(webhook, secret)

    async def list(self, *, tenant: str | None = None) -> tuple[WebhookStatus, ...]:
        """Return the webhooks, oldest first, with the number of their posts in each state."""
        hooks = await self._resources.read(partial(webhooks.read_webhooks, tenant=tenant))
        counts = await self._resources.read(webhooks.count_posts)
        return tuple(WebhookStatus(hook, counts.get(hook.id, {})) for hook in hooks)

    async def posts(self, webhook_id: str, *, tenant: str | None = None) -> tuple[WebhookPost, ...]:
        """Return the last 100 posts of a webhook, newest first. Raises `NotFound`."""
        await self._read_webhook(webhook_id, tenant)
        posts = partial(webhooks.read_posts, webhook_id=webhook_id, most=MOST_POSTS)
        return tuple(await self._resources.read(posts))

    async def remove(self, webhook_id: str, *, tenant: str | None = None) -> Webhook:
        """Remove a webhook with its posts, and return it. Raises `NotFound`."""
        return await self._resources.write(partial(webhooks.remove_webhook, webhook_id=webhook_id, tenant=tenant))

    async def retry(self, webhook_id: str, *, tenant: str | None = None) -> int:
        """Queue again the posts of a webhook that were set aside, and return their number. Raises `NotFound`."""
        await self._read_webhook(webhook_id, tenant)
        at = self._resources.now()
        return await self._resources.write(partial(webhooks.requeue_set_aside_posts, webhook_id=webhook_id, at=at))

    async def test(self, webhook_id: str, *, tenant: str | None = None) -> WebhookPost:
        """Send a post with the event "test" at once, and return it with its state. Raises `NotFound`."""
        webhook, now = await self._read_webhook(webhook_id, tenant), self._resources.now
        post = await self._resources.write(partial(webhooks.add_test_post, webhook_id=webhook_id, at=now()))
        sender = webhook_sender(await self._resources.store(), self._resources.settings.webhooks, now)
        await sender.send_post(webhook, post)
        return next(sent for sent in await self.posts(webhook_id) if sent.id == post.id)

    async def _read_webhook(self, webhook_id: str, tenant: str | None) -> Webhook:
        webhook, _ = await self._resources.read(
            partial(webhooks.read_webhook_and_secret, webhook_id=webhook_id, tenant=tenant)
        )
        return webhook

    async def send(self) -> None:
        """Send the posts that wait, unless another process does this now or has just done it.

        `afterword schedule` and `afterword serve` call this automatically.
        """
        store, settings = await self._resources.store(), self._resources.settings
        if not await store.read(webhooks.read_webhooks):
            return
        rhythm = Rhythm.parse(settings.schedule.webhooks, settings.schedule.timezone)
        sender = webhook_sender(store, settings.webhooks, self._resources.now)
        job = Job(WEBHOOKS, rhythm, sender.send_due_posts, is_announced=False)
        await attempt_job(store, job, clock=JobClock(), lease_s=settings.schedule.lease_s)
