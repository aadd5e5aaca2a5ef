"""A long session of one key holds up nobody else's: each has a thread where the others are busy."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import afterword
from afterword import Afterword
from afterword.extractors.extractor import Extraction, Window
from afterword.extractors.rules import RulesExtractor
from afterword.server.background import MOST_THREADS, WorkThreads
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from service import ServiceClient, said, serving

LONG_ENOUGH_S = 60


class HeldExtractor(RulesExtractor):
    """Works on sessions of Mira without a pause until it is released, as a long session does."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()
        self.begun = threading.Event()

    async def extract(self, window: Window) -> Extraction:
        """Read a window."""
        if any("I am Mira" in turn.text for turn in window.turns):
            self.begun.set()
            assert self.released.wait(LONG_ENOUGH_S)
        return await super().extract(window)


@pytest.fixture
async def extractor() -> AsyncIterator[HeldExtractor]:
    held = HeldExtractor()
    yield held
    held.released.set()


@pytest.fixture
async def call(tmp_path: Path, extractor: HeldExtractor) -> AsyncIterator[ServiceClient]:
    settings = Settings(embedding=EmbeddingOptions(kind="none"))
    url = f"sqlite:///{tmp_path}/afterword.db"
    async with afterword.open(url, settings=settings, extractor=extractor) as app, serving(app) as client:
        yield client
        extractor.released.set()


async def done(app: Afterword, user: str, count: int) -> None:
    """Wait until so many sessions of a user are processed."""
    async with asyncio.timeout(LONG_ENOUGH_S):
        while (await app.user(user).sessions(state="done")).total < count:  # noqa: ASYNC110 - nothing else shows it
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("are_queued", [True, False])
async def test_long_sessions_of_one_key_hold_up_nobody_else(
    call: ServiceClient, extractor: HeldExtractor, are_queued: bool
) -> None:
    await call.secret("mira")
    sending = [
        asyncio.create_task(
            call(
                "POST",
                "/v1/me/sessions",
                json={"session_id": str(number), "state": said("I am Mira."), "queue": are_queued},
            )
        )
        for number in range(2 * MOST_THREADS)
    ]
    assert await asyncio.to_thread(extractor.begun.wait, LONG_ENOUGH_S)
    body = {"session_id": "1", "state": said("I live in Oslo.")}
    answer = await asyncio.wait_for(call("POST", "/v1/me/sessions", user="noor", json=body), LONG_ENOUGH_S)
    assert answer.json()["result"] == "done"
    queued = {**body, "session_id": "2", "queue": True}
    await call("POST", "/v1/me/sessions", user="noor", json=queued)
    await done(call.app, "noor", 2)
    assert not extractor.released.is_set()
    extractor.released.set()
    for task in sending:
        assert (await task).status_code == (202 if are_queued else 200)
    await done(call.app, "mira", len(sending))


async def test_work_is_done_in_one_thread_as_long_as_that_answers() -> None:
    async def name() -> str:
        await asyncio.sleep(0)
        return str(threading.get_ident())

    threads = WorkThreads()
    async with threads.running_until_block_ends():
        assert len(set(await asyncio.gather(*(threads.run(str(owner), name()) for owner in range(20))))) == 1
