"""Commands for access from outside: the service, its keys, and who did what with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from afterword.cli.app import Json, ScopeName, User, app
from afterword.cli.calls import call_store, chosen_scope
from afterword.cli.output import console, counted, day, print_json, table
from afterword.client.json_forms import iso_instant
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword import Afterword
    from afterword.client.values import ApiKey

keys_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Make, list and revoke keys of the service.")
app.add_typer(keys_app, name="keys")

KeyId = Annotated[str, typer.Argument(metavar="ID", help="The id of a key; see `afterword keys list`.")]


@keys_app.command(name="create")
def create_key_command(
    user: User = None,
    scope: ScopeName = None,
    name: Annotated[
        str, typer.Option("--name", help="A name by which you recognise the key, for example laptop.")
    ] = "",
    read_only: Annotated[bool, typer.Option("--read-only", help="The key changes nothing.")] = False,
    admin: Annotated[bool, typer.Option("--admin", help="The key also opens every memory of the tenant.")] = False,
    tenant: Annotated[str | None, typer.Option("--tenant", help="The tenant of an admin key.")] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="INSTANT", help="When the key ends, for example 2027-01-31.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it. It is shown once."""
    from afterword.client.access.keys import key_json

    owner = chosen_scope(user, scope)
    made = call_store(
        lambda store: store.keys.create(
            scope=owner, tenant=tenant, name=name, read_only=read_only, admin=admin, expires_at=expires
        ),
        create=True,
    )
    if as_json:
        print_json({"id": made.key.id, "key": made.secret, **key_json(made.key)})
        return
    console().print(made.secret)
    console(to_errors=True).print(f"key {made.key.id} for {_opens(made.key)}; it is not shown again")


@keys_app.command(name="list")
def list_keys_command(as_json: Json = False) -> None:
    """List the keys of the store, without the keys themselves."""
    from afterword.client.access.keys import key_json

    keys = call_store(lambda store: store.keys.list())
    if as_json:
        print_json([key_json(key) for key in keys])
        return
    names = ("key", "name", "opens", "rights", "made", "last used", "expires", "revoked")
    rows = [
        (
            *(key.id, key.name, _opens(key), "read" if key.is_read_only else "read, write"),
            *(day(at) for at in (key.created_at, key.last_used_at, key.expires_at, key.revoked_at)),
        )
        for key in keys
    ]
    console().print(table(counted(len(keys), "key"), names, rows))


def _opens(key: ApiKey) -> str:
    scopes = [str(key.scope)] if key.scope else []
    return ", ".join([*scopes, *([f"every memory of {key.tenant}"] if key.is_admin else [])])


@keys_app.command(name="revoke")
def revoke_key_command(key_id: KeyId, as_json: Json = False) -> None:
    """Revoke a key for good."""
    from afterword.client.access.keys import key_json

    key = call_store(lambda store: store.keys.revoke(key_id))
    if as_json:
        print_json(key_json(key))
    else:
        console().print(f"key {key.id} is revoked")


webhooks_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Tell other programs when something needs a person."
)
app.add_typer(webhooks_app, name="webhooks")

WebhookId = Annotated[str, typer.Argument(metavar="ID", help="The id of a webhook; see `afterword webhooks list`.")]


@webhooks_app.command(name="add")
def add_webhook_command(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where posts go; it begins with https://.")],
    events: Annotated[
        list[str] | None,
        typer.Option("--event", help="session set aside, budget reached or review waits; several times; default all."),
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant whose memories are meant.")] = "default",
    as_json: Json = False,
) -> None:
    """Make a webhook and print the secret that signs its posts. It is shown once."""
    from afterword.client.access.webhooks import webhook_json

    made = call_store(lambda store: store.webhooks.add(url, events=events or (), tenant=tenant), create=True)
    if as_json:
        print_json({**webhook_json(made.webhook), "secret": made.secret})
        return
    console().print(made.secret)
    console(to_errors=True).print(f"webhook {made.webhook.id}; the secret is not shown again")


@webhooks_app.command(name="list")
def list_webhooks_command(
    webhook_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="List the posts of this webhook, newest first.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the webhooks with the number of their posts, or the posts of one."""
    from afterword.client.access.webhooks import webhook_json, webhook_post_json

    if webhook_id is not None:
        posts = [webhook_post_json(post) for post in call_store(lambda store: store.webhooks.posts(webhook_id))]
        if as_json:
            print_json(posts)
        else:
            names = ("event", "created_at", "state", "tries", "next_try_at", "failure")
            rows = [tuple(post[name] or "" for name in names) for post in posts]
            console().print(table(counted(len(rows), "post"), names, rows))
        return
    hooks = call_store(lambda store: store.webhooks.list())
    if as_json:
        print_json([{**webhook_json(hook.webhook), "posts": hook.posts} for hook in hooks])
        return
    listed: list[tuple[Any, ...]] = [
        (
            *(hook.webhook.id, hook.webhook.url, hook.webhook.tenant, ", ".join(hook.webhook.events)),
            ", ".join(f"{count} {state}" for state, count in hook.posts.items()),
        )
        for hook in hooks
    ]
    console().print(table(counted(len(listed), "webhook"), ("webhook", "url", "tenant", "events", "posts"), listed))


@webhooks_app.command(name="remove")
def remove_webhook_command(webhook_id: WebhookId) -> None:
    """Remove a webhook with its posts."""
    removed = call_store(lambda store: store.webhooks.remove(webhook_id))
    console().print(f"webhook {removed.id} is removed")


@webhooks_app.command(name="retry")
def retry_webhook_command(webhook_id: WebhookId) -> None:
    """Queue the posts again that were set aside."""
    count = call_store(lambda store: store.webhooks.retry(webhook_id))
    console().print(f"{counted(count, 'post')} queued again")


@webhooks_app.command(name="test")
def try_webhook_command(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Send a test at once, and say what became of it. The exit code is 1 if it failed."""
    from afterword.client.access.webhooks import webhook_post_json

    post = call_store(lambda store: store.webhooks.test(webhook_id))
    if as_json:
        print_json(webhook_post_json(post))
    else:
        console().print("sent" if post.failure is None else f"not sent: {post.failure}")
    if post.failure is not None:
        raise typer.Exit(1)


@app.command(name="audit")
def audit_command(
    user: User = None,
    scope: ScopeName = None,
    key_id: Annotated[str | None, typer.Option("--key", metavar="ID", help="Only the requests of one key.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many entries are shown.")] = 100,
    as_json: Json = False,
) -> None:
    """List which key asked the service for what and when, newest first. No words are recorded."""
    from afterword.client.access.requests import audit_entry_json

    owner = chosen_scope(user, scope)
    page = call_store(lambda store: store.audit(scope=owner, key_id=key_id, limit=limit))
    if as_json:
        print_json([audit_entry_json(entry) for entry in page.entries])
        return
    if not page.entries:
        console().print("no requests")
        return
    rows: list[tuple[Any, ...]] = [
        (
            *(iso_instant(entry.at), entry.key_id, entry.action, entry.scope or entry.tenant),
            *(entry.result or "no answer", ", ".join(map(str, entry.run_ids))),
        )
        for entry in page.entries
    ]
    console().print(table(f"{len(rows)} requests", ("at", "key", "action", "scope", "result", "runs"), rows))


@app.command(name="serve")
def serve_command(
    host: Annotated[str | None, typer.Option("--host", help="The address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="The port (8321); 0 takes any.")] = None,
) -> None:
    """Serve the memory over HTTP, to whoever has a key, until stopped."""
    try:
        from afterword.server.listener import serve
    except ModuleNotFoundError as error:
        raise ArgumentInvalid(f"the service needs the extra ({error.name}): pip install 'afterword[server]'") from None

    async def work(store: Afterword) -> None:
        named = {"host": host, "port": port}
        changed = {name: setting for name, setting in named.items() if setting is not None}
        options = store.settings.server.model_copy(update=changed)
        await serve(store, options, on_begin=lambda address: typer.echo(f"serving {store.shown_url} at {address}"))

    call_store(work, create=True)
