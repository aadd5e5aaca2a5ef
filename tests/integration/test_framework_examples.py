"""The examples with libraries that not everybody has, as their users rely on them."""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

LONGEST_S = 60.0


def test_both_frameworks_know_what_the_other_one_heard(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = repository / "examples" / "two_frameworks.py"
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "Agent Framework: From Bergen, window seat.",
        "AutoGen: From Oslo, window seat.",
    ]


@pytest.mark.parametrize(
    ("example", "module", "needed"),
    [
        ("two_frameworks.py", "agent_framework", "pip install 'afterword[agent-framework]'"),
        ("mcp_workbench.py", "autogen_ext.tools.mcp", "pip install 'autogen-ext[mcp]' 'mcp<2'"),
    ],
)
def test_an_example_names_what_it_needs(
    repository: Path, monkeypatch: pytest.MonkeyPatch, example: str, module: str, needed: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(repository / "examples" / example), run_name="__main__")
    assert needed in str(ended.value.code)


@pytest.fixture
def create_app(repository: Path) -> Callable[..., FastAPI]:
    module: dict[str, Any] = runpy.run_path(str(repository / "examples" / "chat_service.py"))
    made: Callable[..., FastAPI] = module["create_app"]
    return made


def say(client: TestClient, user: str, chat: str, text: str) -> str:
    with client.stream("POST", f"/chats/{chat}", json={"text": text}, headers={"X-User": user}) as response:
        assert response.status_code == 200
        return "".join(response.iter_text())


def notes(client: TestClient, user: str) -> list[str]:
    response = client.get("/notes", headers={"X-User": user})
    known: list[str] = response.json()
    return known


def awaited(client: TestClient, user: str) -> list[str]:
    """Return what is known of a person, as soon as it is anything."""
    ends_at = time.monotonic() + LONGEST_S
    while time.monotonic() < ends_at:
        if known := notes(client, user):
            return known
        time.sleep(0.1)
    return []


def test_each_person_has_a_memory_that_is_filled_in_the_background(
    create_app: Callable[..., FastAPI], tmp_path: Path
) -> None:
    with TestClient(create_app(f"sqlite:///{tmp_path}/chats.db", idle_s=0.2)) as client:
        assert say(client, "mira", "monday", "I live in Bergen.").startswith("I know 0 notes")
        say(client, "otto", "monday", "I live in Rome.")
        assert awaited(client, "mira") == ["The user lives in Bergen."]
        assert awaited(client, "otto") == ["The user lives in Rome."]
        answer = say(client, "mira", "tuesday", "Where do I live?")
        assert "The user lives in Bergen." in answer
        assert "Rome" not in answer


def test_what_was_left_when_the_service_ended_is_processed_when_it_starts(
    create_app: Callable[..., FastAPI], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with TestClient(create_app(url)) as client:
        say(client, "mira", "monday", "I live in Bergen.")
        assert notes(client, "mira") == []
    with TestClient(create_app(url)) as client:
        assert awaited(client, "mira") == ["The user lives in Bergen."]
