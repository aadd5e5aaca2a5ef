"""The command that opens the pages for the operator of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from afterword.cli.app import ScopeName, User, app
from afterword.cli.calls import call_store, chosen_scope
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword import Afterword


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
    opening = "" if owner is None else f"{scope_path(owner).removeprefix(f'{PREFIX}/')}/memory"

    def begin(link: str) -> None:
        typer.echo(f"open {link}\nstop with Ctrl-C")
        if browser:
            import webbrowser

            webbrowser.open(link)

    async def work(store: Afterword) -> None:
        options = store.settings.server.model_copy(update={"host": "127.0.0.1", "port": port})
        await serve(store, options, on_begin=begin, opening=opening)

    call_store(work)
