"""A live agent pays for what it uses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import afterword

NAME = "import afterword"
AGENT = "from afterword import FactMemory, Scope, record_session, resume"
PROVIDER = "from afterword.agents.agent_framework import FactMemoryProvider"
COMMANDS = "import afterword.cli.outcomes, afterword.cli.progress, afterword.client.status"
DOOR = """
import asyncio, afterword
async def main():
    async with afterword.open("sqlite://") as app:
        mira = app.user("mira")
        await mira.remember("I like tea.")
        state = {"type": "AssistantAgentState", "llm_context": {"messages": []}}
        await mira.process(state, session_id="a", started_at="2026-03-02")
        await mira.facts(); await mira.search("tea"); await mira.context("tea"); await app.status()
asyncio.run(main())
"""
STORE_AT_HAND = """
import asyncio, sys
from afterword.store.database.engine import Store
async def use():
    async with Store(sys.argv[1]) as store:
        assert len(set(await store.migrate())) == 1
        await store.check()
asyncio.run(use())
"""
AUTOGEN = "from afterword import Afterword, FactMemory, record_session, memory_tools"
ONE_AFTER_ANOTHER = ((NAME, AGENT, PROVIDER), (COMMANDS, STORE_AT_HAND, DOOR, AUTOGEN))
"""What one interpreter runs. What a statement must not load, those before it must not load either."""

Loaded = dict[str, set[str]]


@pytest.fixture(scope="module")
def loaded(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """The modules that are loaded after each statement."""
    modules: Loaded = {}
    store = shutil.copy(sqlite_template, tmp_path_factory.mktemp("at_hand"))
    for statements in ONE_AFTER_ANOTHER:
        code = "".join(f"{statement}\nimport sys; print(*sys.modules)\n" for statement in statements)
        done = subprocess.run(
            [sys.executable, "-c", code, f"sqlite:///{store}"], capture_output=True, text=True, check=True
        )
        lines = done.stdout.splitlines()
        modules |= {statement: set(line.split()) for statement, line in zip(statements, lines, strict=True)}
    return modules


def test_a_live_agent_loads_no_model_client_no_scheduler_and_no_queue(loaded: Loaded) -> None:
    assert not loaded[AGENT] & {
        "openai",
        "instructor",
        "apscheduler",
        "procrastinate",
        "afterword.pipeline",
        "afterword.extractors.model.client",
    }


def test_whoever_uses_autogen_never_loads_the_other_framework(loaded: Loaded) -> None:
    assert "agent_framework" not in loaded[AUTOGEN]


def test_a_provider_loads_no_model_client_no_scheduler_and_no_queue(loaded: Loaded) -> None:
    assert not loaded[PROVIDER] & {
        "openai",
        "instructor",
        "apscheduler",
        "procrastinate",
        "afterword.pipeline",
        "afterword.client",
    }


def test_whoever_uses_no_workers_never_loads_their_queue(loaded: Loaded) -> None:
    assert "procrastinate" not in loaded[COMMANDS]


def test_a_store_whose_tables_are_up_to_date_is_opened_without_the_library_that_changes_tables(loaded: Loaded) -> None:
    assert "sqlalchemy" in loaded[STORE_AT_HAND]
    assert "alembic" not in loaded[STORE_AT_HAND]


def test_the_door_loads_what_its_methods_need(loaded: Loaded) -> None:
    """Reads, `remember` and the offline rules need no model, no scheduler, no queue, and no agents."""
    assert not loaded[DOOR] & {"openai", "instructor", "apscheduler", "procrastinate", "autogen_core"}


def test_the_name_alone_loads_nothing(loaded: Loaded) -> None:
    assert not {name for name in loaded[NAME] if name.startswith(("afterword.", "sqlmodel", "autogen"))}


def test_every_public_name_is_there() -> None:
    for name in afterword.__all__:
        assert getattr(afterword, name)
    assert set(afterword.__all__) <= set(dir(afterword))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Memory'"):
        afterword.Memory  # noqa: B018


def test_autogen_finds_the_memory_by_its_provider_path() -> None:
    """AutoGen imports the module and asks it for the class: a lazy module must answer."""
    assert afterword.__getattribute__("FactMemory").component_provider_override == "afterword.FactMemory"
