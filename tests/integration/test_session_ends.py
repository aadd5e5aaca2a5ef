"""Sessions that are processed in the background when they end, also where their program is killed before."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from pathlib import Path

import pytest
from autogen_agentchat.agents import AssistantAgent

import afterword
from afterword import Afterword, ProcessingOptions, record_session
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Extraction, Window
from afterword.extractors.rules import RulesExtractor
from afterword.store.database.engine import Store
from answering import run_answer
from batches import start, wait_until
from conversing import replying
from nursery import Child

RULES = ProcessingOptions(extractor="rules")
KILLS, SOAK_KILLS = 3, 100
LONGEST_S = 0.4
"""Processing ends about this time after the answer; a kill comes at any moment before."""


async def talk(app: Afterword, session_id: str, text: str) -> None:
    agent = AssistantAgent("helper", replying("Noted."))
    async with app.user("mira").record(agent, session_id=session_id, process=True):
        await agent.run(task=text)


async def learned(app: Afterword) -> set[str]:
    return {fact.statement for fact in (await app.user("mira").facts()).facts}


async def test_a_session_is_processed_when_its_block_ends(store: Store) -> None:
    async with afterword.open(store=store) as app:
        processor = app.processor(RULES)
        await talk(app, "monday", "I live in Bergen.")
        assert await learned(app) == set(), "the block does not wait for it"
        await processor.finish()
        assert await learned(app) == {"The user lives in Bergen."}


async def test_record_session_needs_nothing_opened(
    tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works in a process of its own, by the settings of the environment."""
    shutil.copy(sqlite_template, tmp_path / "own.db")
    url = f"sqlite:///{tmp_path}/own.db"
    monkeypatch.setenv("AFTERWORD_EXTRACTOR", "rules")
    agent = AssistantAgent("helper", replying("Noted."))
    async with record_session(agent, user="mira", session_id="monday", store=url, process=True):
        await agent.run(task="I live in Bergen.")
    async with afterword.open(url) as app:
        for _ in range(600):
            if await learned(app):
                break
            await asyncio.sleep(0.1)
        assert await learned(app) == {"The user lives in Bergen."}
        session = await app.session("monday")
        assert session.session.progress == "done"


async def test_what_an_earlier_program_left_is_processed_with_the_next_session(store: Store) -> None:
    async with afterword.open(store=store) as app:
        app.processor(RULES)
        await talk(app, "monday", "I live in Bergen.")
    async with afterword.open(store=store) as app:
        assert await learned(app) == set(), "closing ended the work"
        processor = app.processor(RULES)
        await talk(app, "tuesday", "I like tea.")
        await processor.finish()
        assert await learned(app) == {"The user lives in Bergen.", "The user likes tea."}


class Failing(RulesExtractor):
    """Fails a number of times, then reads by the rules."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    async def extract(self, window: Window) -> Extraction:
        self.failures -= 1
        if self.failures >= 0:
            raise ExtractionError("the model is away")
        return await super().extract(window)


async def test_failures_are_counted_and_set_aside_as_in_a_batch(store: Store) -> None:
    async with afterword.open(store=store, extractor=Failing(1)) as app:
        await talk(app, "monday", "I live in Bergen.")
        await app.processor().finish()
        details = await app.session("monday")
        assert (details.session.progress, details.session.attempts) == ("failed", 1)
        await talk(app, "tuesday", "I like tea.")
        await app.processor().finish()
        assert await learned(app) == {"The user likes tea."}, "a failed session waits until it is due"
        await app.retry("monday")
        await app.run_pending()
        assert await learned(app) == {"The user lives in Bergen.", "The user likes tea."}


def _wait_for_answer(program: Child) -> None:
    wait_until(lambda: program.printed() == "answered\n")


def _check_kills(folder: Path, template: Path, kills: int) -> None:
    shutil.copy(template, folder / "killed.db")
    url, chance = f"sqlite:///{folder}/killed.db", random.Random(20261122)
    for number in range(kills):
        arguments = url, f"session {number}", f"I have visited Town{number}."
        program = start(url, folder, *arguments, program=run_answer)
        _wait_for_answer(program)
        time.sleep(chance.uniform(0.0, LONGEST_S))
        program.kill()
        program.wait()

    async def check() -> None:
        async with afterword.open(url) as app:
            await app.run_pending(options=RULES)
            sessions = (await app.sessions()).sessions
            assert {session.progress for session in sessions} == {"done"}
            assert len(sessions) == kills
            runs = (await app.user("mira").runs()).runs
            assert len({record.run.source for record in runs}) == len(runs) == kills, "each is processed once"
            assert (await app.run_pending(options=RULES)).sessions == ()

    asyncio.run(check())


@pytest.mark.begun_first
def test_a_session_whose_program_is_killed_after_the_answer_is_processed_once(
    tmp_path: Path, sqlite_template: Path
) -> None:
    _check_kills(tmp_path, sqlite_template, KILLS)


@pytest.mark.soak
def test_many_programs_are_killed_after_the_answer(tmp_path: Path, sqlite_template: Path) -> None:
    _check_kills(tmp_path, sqlite_template, SOAK_KILLS)
