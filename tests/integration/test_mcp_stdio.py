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
from mcp.shared.exceptions import MCPError

import afterword
from commands import Commands, clean_environment
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
async def test_a_client_starts_the_process_as_the_docs_say(repository: Path, store_url: str, mode: str) -> None:
    arguments, documented = arguments_of_the_docs(repository)
    process = process_of(arguments, {"AFTERWORD_STORE__URL": store_url})
    person = Person("accept")
    async with Client(stdio_client(process), mode=mode, elicitation_callback=person.answer) as client:
        assert documented == {tool.name for tool in (await client.list_tools()).tools}
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


@pytest.mark.parametrize("mode", MODES)
async def test_no_words_of_a_client_get_to_standard_error(store_url: str, tmp_path: Path, mode: str) -> None:
    process = process_of(["mcp", "--user", "mira"], {"AFTERWORD_STORE__URL": store_url})
    written = tmp_path / "stderr"
    with written.open("w") as file:
        async with Client(stdio_client(process, errlog=file), mode=mode) as client:
            for name, arguments in (("memory", {"topic": "zanzibar"}), ("zanzibar", {})):
                with pytest.raises(MCPError, match=r"no such prompt|wrong arguments"):
                    await client.get_prompt(name, arguments)
            await error_of(client, "recall", query="seat", limit="zanzibar")
    assert "zanzibar" not in written.read_text()


def test_it_needs_to_know_whose_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    afterword = Commands(tmp_path, monkeypatch, capsys)
    assert afterword("mcp", expected=2) == afterword.errors, "nothing goes to standard output"
    assert "--user NAME" in afterword.errors


def arguments_of_the_docs(repository: Path) -> tuple[list[str], set[str]]:
    """Return the arguments with which the page lets a client start the server, and the tools that it describes."""
    page = (repository / "docs" / "mcp.md").read_text(encoding="utf-8")
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    servers = [server for block in blocks for server in (block.get("mcpServers") or block["servers"]).values()]
    local = [server for server in servers if "command" in server]
    assert len(local) == 2
    assert {(server["command"], *server["env"]) for server in local} == {("afterword", "AFTERWORD_STORE__URL")}
    (arguments,) = {tuple(server["args"]) for server in local}
    return list(arguments), set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_an_autogen_agent_uses_the_memory(repository: Path, store_url: str, tmp_path: Path) -> None:
    """The example runs with the former library, the server that it starts with the present one."""
    if not FORMER_LIBRARY.is_dir() and "CI" not in os.environ:
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
