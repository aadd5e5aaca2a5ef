"""A live agent pays for what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

import afterword


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_live_agent_loads_no_model_client_no_scheduler_and_no_queue() -> None:
    assert not loaded_by("from afterword import FactMemory, Scope, record_session, resume") & {
        "openai",
        "instructor",
        "apscheduler",
        "procrastinate",
        "afterword.pipeline",
        "afterword.extractors.model.client",
    }


def test_whoever_uses_autogen_never_loads_the_other_framework() -> None:
    assert "agent_framework" not in loaded_by(
        "from afterword import Afterword, FactMemory, record_session, memory_tools"
    )


def test_a_provider_loads_no_model_client_no_scheduler_and_no_queue() -> None:
    assert not loaded_by("from afterword.agents.agent_framework import FactMemoryProvider") & {
        "openai",
        "instructor",
        "apscheduler",
        "procrastinate",
        "afterword.pipeline",
        "afterword.client",
    }


def test_whoever_uses_no_workers_never_loads_their_queue() -> None:
    commands = "import afterword.cli.outcomes, afterword.cli.progress, afterword.client.status"
    assert "procrastinate" not in loaded_by(commands)


def test_the_door_loads_what_its_methods_need() -> None:
    """Reads, `remember` and the offline rules need no model, no scheduler, no queue, and no agents."""
    program = """
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
    assert not loaded_by(program) & {"openai", "instructor", "apscheduler", "procrastinate", "autogen_core"}


def test_the_name_alone_loads_nothing() -> None:
    assert not {
        name for name in loaded_by("import afterword") if name.startswith(("afterword.", "sqlmodel", "autogen"))
    }


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
