"""Commands for access from outside: the service, its keys, webhooks and audit log, the pages, and MCP."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

import afterword
from afterword.cli.app import (
    Json,
    ScopeName,
    User,
    app,
    call_store,
    chosen_scope,
    hint_at_similar_memory,
    required_scope,
)
from afterword.cli.printing import count_with_noun, date_text, print_lines, print_result, table
from afterword.client.forms.memory_forms import iso_instant
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword.client.access.webhooks import WebhookStatus

keys_app: typer.Typer = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make, list and revoke keys of the service."
)
app.add_typer(keys_app, name="keys")

KeyId = Annotated[str, typer.Argument(metavar="ID", help="The id of a key; see `afterword keys list`.")]


KeyName = Annotated[str, typer.Option("--name", help="A name by which you recognise the key, for example laptop.")]
KeyExpiry = Annotated[
    str | None, typer.Option("--expires", metavar="INSTANT", help="When the key ends, for example 2027-01-31.")
]


@keys_app.command(name="create")
def create_key_command(
    user: User = None,
    scope: ScopeName = None,
    name: KeyName = "",
    read_only: Annotated[bool, typer.Option("--read-only", help="The key may only read.")] = False,
    admin: Annotated[bool, typer.Option("--admin", help="The key also opens every memory of the tenant.")] = False,
    tenant: Annotated[str | None, typer.Option("--tenant", help="The tenant of an admin key.")] = None,
    expires: KeyExpiry = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it. It is shown once."""
    owner = chosen_scope(user, scope)

    async def create(store: afterword.Afterword) -> afterword.NewKey:
        if owner is not None:
            await hint_at_similar_memory(store.scope(owner))
        return await store.keys.create(
            scope=owner, tenant=tenant, name=name, read_only=read_only, admin=admin, expires_at=expires
        )

    _print_new_key(call_store(create, create=True), as_json=as_json)


def _print_new_key(made: afterword.NewKey, *, as_json: bool) -> None:
    from afterword.client.access.keys import key_json

    print_result({"id": made.key.id, "key": made.secret, **key_json(made.key)}, made.secret, as_json=as_json)
    if not as_json:
        print_lines(f"key {made.key.id} for {_opened_memories(made.key)}; it is not shown again", to_errors=True)


@keys_app.command(name="list")
def list_keys_command(as_json: Json = False) -> None:
    """List the keys of the store, without the keys themselves."""
    from afterword.client.access.keys import key_json

    keys = call_store(lambda store: store.keys.list())
    names = ("key", "name", "opens", "rights", "made", "last used", "expires", "revoked")
    rows = [
        (
            *(key.id, key.name, _opened_memories(key), "read" if key.is_read_only else "read, write"),
            *(date_text(at) for at in (key.created_at, key.last_used_at, key.expires_at, key.revoked_at)),
        )
        for key in keys
    ]
    print_result(
        [key_json(key) for key in keys], table(count_with_noun(len(keys), "key"), names, rows), as_json=as_json
    )


def _opened_memories(key: afterword.ApiKey) -> str:
    scopes = [str(key.scope)] if key.scope else []
    return ", ".join([*scopes, *([f"every memory of {key.tenant}"] if key.is_admin else [])])


@keys_app.command(name="revoke")
def revoke_key_command(key_id: KeyId, as_json: Json = False) -> None:
    """Revoke a key for good."""
    from afterword.client.access.keys import key_json

    key = call_store(lambda store: store.keys.revoke(key_id))
    print_result(key_json(key), f"key {key.id} is revoked", as_json=as_json)


webhooks_app: typer.Typer = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Tell other programs when something needs a person."
)
app.add_typer(webhooks_app, name="webhooks")

WebhookId = Annotated[str, typer.Argument(metavar="ID", help="The id of a webhook; see `afterword webhooks list`.")]


WebhookEvents = Annotated[
    list[str] | None,
    typer.Option(
        "--event",
        help="The event to send: session set aside, budget reached, review waits or job failed. May be repeated. "
        "Default: all.",
    ),
]


@webhooks_app.command(name="add")
def add_webhook_command(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The address to which posts are sent. It begins with https://.")
    ],
    events: WebhookEvents = None,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant whose memories are meant.")] = "default",
    as_json: Json = False,
) -> None:
    """Make a webhook and print the secret that signs its posts. It is shown once."""
    from afterword.client.access.webhooks import new_webhook_json

    made = call_store(lambda store: store.webhooks.add(url, events=events or (), tenant=tenant), create=True)
    print_result(new_webhook_json(made), made.secret, as_json=as_json)
    if not as_json:
        print_lines(f"webhook {made.webhook.id}; the secret is not shown again", to_errors=True)


@webhooks_app.command(name="list")
def list_webhooks_command(
    webhook_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="List the posts of this webhook, newest first.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the webhooks with the number of their posts, or the posts of one."""
    from afterword.client.access.webhooks import webhook_status_json

    if webhook_id is not None:
        _list_posts(webhook_id, as_json=as_json)
        return
    hooks = call_store(lambda store: store.webhooks.list())
    names = ("webhook", "url", "tenant", "events", "posts")
    listed = table(count_with_noun(len(hooks), "webhook"), names, list(map(_webhook_row, hooks)))
    print_result(list(map(webhook_status_json, hooks)), listed, as_json=as_json)


def _webhook_row(hook: WebhookStatus) -> tuple[object, ...]:
    posts = ", ".join(f"{count} {state}" for state, count in hook.posts.items())
    return (hook.webhook.id, hook.webhook.url, hook.webhook.tenant, ", ".join(hook.webhook.events), posts)


def _list_posts(webhook_id: str, *, as_json: bool) -> None:
    from afterword.client.access.webhooks import webhook_post_json

    posts = [webhook_post_json(post) for post in call_store(lambda store: store.webhooks.posts(webhook_id))]
    names = ("event", "created_at", "state", "tries", "next_try_at", "failure")
    rows = [tuple(post[name] or "" for name in names) for post in posts]
    print_result(posts, table(count_with_noun(len(rows), "post"), names, rows), as_json=as_json)


@webhooks_app.command(name="remove")
def remove_webhook_command(webhook_id: WebhookId) -> None:
    """Remove a webhook with its posts."""
    removed = call_store(lambda store: store.webhooks.remove(webhook_id))
    print_lines(f"webhook {removed.id} is removed")


@webhooks_app.command(name="retry")
def retry_webhook_command(webhook_id: WebhookId) -> None:
    """Queue again the posts of a webhook that were set aside."""
    count = call_store(lambda store: store.webhooks.retry(webhook_id))
    print_lines(f"{count_with_noun(count, 'post')} queued again")


@webhooks_app.command(name="test")
def try_webhook_command(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Send a test post at once, and say whether it arrived. The exit code is 1 if it failed."""
    from afterword.client.access.webhooks import webhook_post_json

    post = call_store(lambda store: store.webhooks.test(webhook_id))
    shown = "sent" if post.failure is None else f"not sent: {post.failure}"
    print_result(webhook_post_json(post), shown, as_json=as_json)
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
    """List the audit log of the service, newest first: which key requested what, and when. It contains no words."""
    from afterword.client.access.keys import audit_entry_json

    owner = chosen_scope(user, scope)
    entries = call_store(lambda store: store.audit(scope=owner, key_id=key_id, limit=limit)).entries
    names = ("at", "key", "action", "scope", "result", "runs")
    listed = table(f"{len(entries)} requests", names, list(map(_audit_row, entries)))
    print_result(list(map(audit_entry_json, entries)), listed if entries else "no requests", as_json=as_json)


def _audit_row(entry: afterword.AuditEntry) -> tuple[object, ...]:
    return (
        *(iso_instant(entry.at), entry.key_id, entry.action, entry.scope or entry.tenant),
        *(entry.result or "no answer", ", ".join(map(str, entry.run_ids))),
    )


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

    async def work(store: afterword.Afterword) -> None:
        named = {"host": host, "port": port}
        changed = {name: setting for name, setting in named.items() if setting is not None}
        options = store.settings.server.model_copy(update=changed)
        await serve(store, options, on_begin=lambda address: typer.echo(f"serving {store.shown_url} at {address}"))

    call_store(work, create=True)


@app.command(name="inspect")
def inspect_command(
    user: User = None,
    scope: ScopeName = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the link in the browser.")] = True,
) -> None:
    """See, search, correct and forget what is remembered, in the browser of this machine, until stopped.

    Only this machine reaches it, by a link that works once and within ten minutes. It needs afterword[server].
    """
    owner = chosen_scope(user, scope)
    try:
        from afterword.server.listener import serve
        from afterword.server.pages.rendering import PREFIX, scope_path
    except ModuleNotFoundError as error:
        raise ArgumentInvalid(f"the pages need the extra ({error.name}): pip install 'afterword[server]'") from None
    opened_page = "" if owner is None else f"{scope_path(owner).removeprefix(f'{PREFIX}/')}/memory"

    def show_and_open_link(link: str) -> None:
        typer.echo(f"open {link}\nstop with Ctrl-C")
        if browser:
            _open_privately(link, folder)

    async def work(store: afterword.Afterword) -> None:
        options = store.settings.server.model_copy(update={"host": "127.0.0.1", "port": port})
        await serve(store, options, on_begin=show_and_open_link, opened_page=opened_page)

    with TemporaryDirectory(prefix="afterword-inspect-") as folder:
        call_store(work)


def _open_privately(link: str, folder: str) -> None:
    """Open a link in the browser by a page in a private folder.

    Every user of the machine can read the arguments of a process, so the link is not passed as an argument.
    """
    import webbrowser

    page = Path(folder) / "open.html"
    page.touch(mode=0o600)
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">')
    webbrowser.open(page.as_uri())


@app.command(name="mcp")
def mcp_command(
    user: User = None,
    scope: ScopeName = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer only the tools that read.")] = False,
    agent: Annotated[
        str, typer.Option(help="The name of the agent that uses this server. Its findings are saved under it.")
    ] = "agent",
) -> None:
    """Serve a memory to an MCP client over standard input and output. The MCP client starts this command.

    It needs afterword[server].
    """
    owner = required_scope(user, scope)
    if find_spec("mcp") is None:
        raise ArgumentInvalid("the MCP server needs the extra: pip install 'afterword[server]'")

    async def serve(store: afterword.Afterword) -> None:
        from afterword.server.mcp.registration import serve_stdio

        await serve_stdio(store.scope(owner), read_only=read_only, agent=agent)

    call_store(serve, create=not read_only)
