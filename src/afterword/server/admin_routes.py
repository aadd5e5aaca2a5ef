"""Routes for an admin key: memories of its tenant, waiting and failed sessions, jobs, the audit log, and webhooks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from afterword import Scope
from afterword.client.access.webhooks import new_webhook_json, webhook_json, webhook_post_json
from afterword.errors import NothingSelected
from afterword.server import answer_forms
from afterword.server.access import Admin, Answer, IdempotencyKey, KeyHolder, carry_out_change
from afterword.server.request_types import Cursor, Limit, RetryBody, WebhookBody

router: APIRouter = APIRouter(prefix="/v1/admin", tags=["administration"])

FAILED = ("failed", "set aside")


@router.get("/scopes", response_model=answer_forms.scope_page_json.model)
async def list_scopes(
    who: Admin,
    prefix: Annotated[str, Query(max_length=600)] = "",
    limit: Limit = 50,
    after: Cursor = None,
) -> JSONResponse:
    """List the memories of the tenant whose id begins with `prefix`."""
    page = await who.app.scopes(prefix=prefix, tenant=who.key.tenant, limit=limit, after=after)
    return JSONResponse(answer_forms.scope_page_json(page))


@router.get("/queue", response_model=answer_forms.session_page_json.model)
async def list_queue(who: Admin, limit: Limit = 50, after: Cursor = None) -> JSONResponse:
    """List the sessions of the tenant that wait to be processed, oldest first."""
    return await _list_sessions(who, ("pending",), limit, after)


@router.get("/failures", response_model=answer_forms.session_page_json.model)
async def list_failures(who: Admin, limit: Limit = 50, after: Cursor = None) -> JSONResponse:
    """List the sessions of the tenant that failed or were set aside, with the reason."""
    return await _list_sessions(who, FAILED, limit, after)


async def _list_sessions(who: KeyHolder, states: tuple[str, ...], limit: int, after: str | None) -> JSONResponse:
    page = await who.app.sessions(state=states, tenant=who.key.tenant, limit=limit, after=after)
    return JSONResponse(answer_forms.session_page_json(page))


@router.get("/jobs", response_model=answer_forms.jobs_json.model)
async def list_jobs(who: Admin) -> JSONResponse:
    """List when each periodic job of the store last ended, with counts of what it did and of what failed.

    `afterword status` shows the reasons.
    """
    return JSONResponse(answer_forms.jobs_json(await who.app.jobs()))


@router.post("/retry", response_model=answer_forms.queued_json.model)
async def retry_sessions(body: RetryBody, who: Admin, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """Queue again the sessions that failed or were set aside."""

    async def work() -> Answer:
        if body.scope is not None:
            scopes = {who.memory(Scope.parse(body.scope)).scope}
        else:
            failed = await who.app.sessions(state=FAILED, tenant=who.key.tenant, session_id=body.session_id)
            scopes = {session.scope for session in failed.sessions}
        if not scopes:
            raise NothingSelected("no failed session fits the request")
        queued = [await who.app.retry(body.session_id, scope=scope) for scope in sorted(scopes)]
        return answer_forms.queued_json(sum(map(len, queued)))

    return await carry_out_change(who, "retry", work, idempotency_key=idempotency_key, content=body.model_dump())


@router.get("/audit", response_model=answer_forms.audit_page_json.model)
async def list_audit(
    who: Admin,
    scope: Annotated[str | None, Query(max_length=600)] = None,
    key: Annotated[str | None, Query(max_length=100)] = None,
    limit: Limit = 50,
    after: Cursor = None,
) -> JSONResponse:
    """List the audit log, newest first: which key requested what, and when. It contains no words of memories."""
    page = await who.app.audit(tenant=who.key.tenant, scope=scope, key_id=key, limit=limit, after=after)
    return JSONResponse(answer_forms.audit_page_json(page))


WebhookId = Annotated[str, Path(max_length=100)]


@router.get("/webhooks", response_model=answer_forms.webhooks_json.model)
async def list_webhooks(who: Admin) -> JSONResponse:
    """List the webhooks of the tenant, and how many posts of each are waiting, sent and set aside."""
    return JSONResponse(answer_forms.webhooks_json(await who.app.webhooks.list(tenant=who.key.tenant)))


@router.post("/webhooks", response_model=new_webhook_json.model)
async def add_one_webhook(body: WebhookBody, who: Admin, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """Make a webhook. The answer holds the secret that signs its posts, which is shown once."""

    async def work() -> Answer:
        return new_webhook_json(await who.app.webhooks.add(body.url, events=body.events, tenant=who.key.tenant))

    return await carry_out_change(who, "webhook add", work, idempotency_key=idempotency_key, content=body.model_dump())


@router.get("/webhooks/{webhook_id}/posts", response_model=answer_forms.posts_json.model)
async def list_webhook_posts(webhook_id: WebhookId, who: Admin) -> JSONResponse:
    """List the last 100 posts of a webhook, newest first."""
    return JSONResponse(answer_forms.posts_json(await who.app.webhooks.posts(webhook_id, tenant=who.key.tenant)))


@router.post("/webhooks/{webhook_id}/test", response_model=webhook_post_json.model)
async def try_webhook(
    webhook_id: WebhookId, request: Request, who: Admin, idempotency_key: IdempotencyKey = None
) -> JSONResponse:
    """Send a test post to a webhook at once, and return whether it arrived."""

    async def work() -> Answer:
        sending = who.app.webhooks.test(webhook_id, tenant=who.key.tenant)
        return webhook_post_json(await request.app.state.background.run_in_thread("webhooks", sending))

    return await carry_out_change(
        who, "webhook test", work, idempotency_key=idempotency_key, content={"webhook": webhook_id}
    )


@router.post("/webhooks/{webhook_id}/retry", response_model=answer_forms.queued_json.model)
async def retry_webhook(webhook_id: WebhookId, who: Admin, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """Queue again the posts of a webhook that were set aside."""

    async def work() -> Answer:
        return answer_forms.queued_json(await who.app.webhooks.retry(webhook_id, tenant=who.key.tenant))

    return await carry_out_change(
        who, "webhook retry", work, idempotency_key=idempotency_key, content={"webhook": webhook_id}
    )


@router.delete("/webhooks/{webhook_id}", response_model=webhook_json.model)
async def remove_one_webhook(webhook_id: WebhookId, who: Admin, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """Remove a webhook with its posts."""

    async def work() -> Answer:
        return webhook_json(await who.app.webhooks.remove(webhook_id, tenant=who.key.tenant))

    return await carry_out_change(
        who, "webhook remove", work, idempotency_key=idempotency_key, content={"webhook": webhook_id}
    )
