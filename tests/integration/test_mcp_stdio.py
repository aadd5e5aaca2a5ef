"""`afterword mcp` in a process of its own, with the official client, AutoGen's client, and the lines of the docs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import afterword
from commands import clean_environment
from mcp_clients import MODES, Person, call, error_of

FORMER_LIBRARY = Path(sys.prefix, "mcp1")
"""Version 1 of the library `mcp`, which AutoGen's client needs: `make mcp1` installs it there."""


@pytest.fixture
async def store_url(tmp_path: Path) -> str:
    """A store in which Mira prefers window seats."""
    url = f"sqlite:///{tmp_path}/afterword.db"
    async with afterword.open(url) as app:
        words = {"content": "I prefer window seats.", "source": "user", "type": "UserMessage"}
        state = {"type": "AssistantAgentState", "llm_context": {"messages": [words]}}
        await app.user("mira").process(state, session_id="monday", started_at="2026-03-02")
    return url


def process_of(arguments: list[str], environment: Mapping[str, str]) -> StdioServerParameters:
    source = str(Path(afterword.__file__).parent.parent)
    variables = {**clean_environment(), "PYTHONPATH": source, **environment}
    return StdioServerParameters(command=sys.executable, args=["-m", "afterword", *arguments], env=variables)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_starts_the_process(store_url: str, mode: str) -> None:
    process = process_of(["mcp", "--user", "mira"], {"AFTERWORD_STORE__URL": store_url})
    person = Person("accept")
    async with Client(stdio_client(process), mode=mode, elicitation_callback=person.answer) as client:
        (fact,) = (await call(client, "recall", query="seat"))["facts"]
        assert fact["sources"][0]["session_id"] == "monday"
        assert (await call(client, "remember", statement="The user speaks Polish."))["status"] == "done"
        assert (await call(client, "forget", fact_id=fact["id"]))["status"] == "erased"
        assert [each["statement"] for each in (await call(client, "list_facts"))["facts"]] == [
            "The user speaks Polish."
        ]
    assert len(person.questions) == 2


async def test_read_only_and_without_a_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/absent.db"
    process = process_of(["mcp", "--scope", "default/project/apollo", "--read-only"], {"AFTERWORD_STORE__URL": url})
    async with Client(stdio_client(process)) as client:
        assert "forget" not in {tool.name for tool in (await client.list_tools()).tools}
        assert "absent.db" in await error_of(client, "recall", query="seat")
    assert not (tmp_path / "absent.db").exists()


def test_it_needs_to_know_whose_memory() -> None:
    program = [sys.executable, "-m", "afterword", "mcp"]
    ended = subprocess.run(program, capture_output=True, text=True, env=clean_environment(), check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--user NAME" in ended.stderr


async def test_the_lines_of_the_docs_start_a_server(repository: Path, store_url: str) -> None:
    page = (repository / "docs" / "mcp.md").read_text(encoding="utf-8")
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    servers = [server for block in blocks for server in (block.get("mcpServers") or block["servers"]).values()]
    local = [server for server in servers if "command" in server]
    assert len(local) == 2
    assert {(server["command"], *server["env"]) for server in local} == {("afterword", "AFTERWORD_STORE__URL")}
    (arguments,) = {tuple(server["args"]) for server in local}
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    process = process_of(list(arguments), {"AFTERWORD_STORE__URL": store_url})
    async with Client(stdio_client(process)) as client:
        assert (await call(client, "list_facts"))["total"] == 1
        assert documented == {tool.name for tool in (await client.list_tools()).tools}


def test_an_autogen_agent_uses_the_memory(repository: Path, store_url: str, tmp_path: Path) -> None:
    """The example runs with the former library, the server that it starts with the present one."""
    if not FORMER_LIBRARY.is_dir():
        pytest.skip("AutoGen's client needs version 1 of the library mcp: run `make mcp1`")
    source = Path(afterword.__file__).parent.parent
    command = tmp_path / "bin" / "afterword"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={source} exec {sys.executable} -m afterword "$@"\n')
    command.chmod(0o755)
    environment = {
        **clean_environment(),
        "AFTERWORD_STORE__URL": store_url,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(FORMER_LIBRARY),
    }
    program = [sys.executable, str(repository / "examples" / "mcp_workbench.py"), "mira", "Which", "seat?"]
    ended = subprocess.run(program, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert ended.stdout == "The user prefers window seats. (current; session monday)\n", ended.stderr
