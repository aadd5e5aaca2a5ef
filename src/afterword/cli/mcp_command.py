"""The command that serves a memory to a client of the Model Context Protocol."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from afterword.cli.app import ScopeName, User, app
from afterword.cli.calls import call_store, required_scope
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword import Afterword


@app.command(name="mcp")
def mcp_command(
    user: User = None,
    scope: ScopeName = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer only the tools that read.")] = False,
    agent: Annotated[
        str, typer.Option(help="The name under which findings of the client's agent are saved.")
    ] = "agent",
) -> None:
    """Serve a memory to an MCP client over standard input and output. The client starts this command.

    It needs afterword[server].
    """
    owner = required_scope(user, scope)
    if find_spec("mcp") is None:
        raise ArgumentInvalid("the MCP server needs the extra: pip install 'afterword[server]'")

    async def serve(store: Afterword) -> None:
        from afterword.server.mcp.stdio import serve_stdio

        await serve_stdio(store.scope(owner), read_only=read_only, agent=agent)

    call_store(serve, create=not read_only)
