"""Does at import, once, what every process of the program does first.

It configures the tables, compiles patterns and queries, and makes the commands and a server. The process from which
tests fork others imports it, so each of them finds all of that done.
"""

from __future__ import annotations

import asyncio
import gc
import io
import os
import sys
from contextlib import redirect_stdout, suppress

import pytest

import afterword
from afterword.cli import main
from afterword.server.app import create_app
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from commands import clean_environment
from service import said


async def use() -> None:
    """Process two sessions in a store in memory, and make a server for it."""
    async with afterword.open("sqlite://", settings=Settings(embedding=EmbeddingOptions(kind="none"))) as app:
        for session_id, text in (("monday", "I live in Oslo."), ("friday", "Here it is: I moved to Graz.")):
            await app.user("mira").process(said(text), session_id=session_id, started_at="2026-03-02")
        await app.user("mira").context("Where do I live?")
        create_app(app)


with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()), suppress(SystemExit):
    for name in os.environ.keys() - clean_environment().keys():
        patch.delenv(name)
    patch.setattr(sys, "argv", ["afterword", "--version"])
    asyncio.run(use())
    main()
# A forked process shares these objects in memory until its garbage collector visits them. Frozen ones are not visited.
gc.freeze()
