"""The processes of compose.yaml, with its settings, where no container runtime is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from batches import wait_until
from commands import clean_environment
from nursery import Child
from service import said


@pytest.fixture(scope="module")
def compose(repository: Path) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    content: dict[str, Any] = yaml.safe_load((repository / "compose.yaml").read_text(encoding="utf-8"))
    return content


def test_every_container_is_confined(compose: dict[str, Any], repository: Path) -> None:
    own = {name: service for name, service in compose["services"].items() if name != "database"}
    assert set(own) == {"migrate", "server", "schedule", "worker"}
    for service in own.values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for service in own.values() for port in service.get("ports", []))
    image = (repository / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER \d+$", image, re.MULTILINE)
    assert "HEALTHCHECK" in image


@pytest.fixture
def environment(compose: dict[str, Any], request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings of the containers, with the store of the test and an address of this machine."""
    named = dict(compose["x-afterword"]["environment"])
    named |= {
        "AFTERWORD_STORE__URL": str(request.getfixturevalue("postgres_store_url")),
        "AFTERWORD_SERVER__HOST": "127.0.0.1",
        "AFTERWORD_SERVER__ALLOWED_HOSTS": "[]",
        "AFTERWORD_EMBEDDING__KIND": "none",
        "AFTERWORD_SCHEDULE__PENDING": "1",
        "AFTERWORD_SCHEDULE__JITTER_S": "0",
    }
    return {**clean_environment(), **named}


@pytest.fixture
def address(compose: dict[str, Any], environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The address of the server, while all processes of the file run."""

    def started(stack: ExitStack, name: str, *options: str) -> Child:
        log = tmp_path / f"{name}-{uuid4().hex}.txt"
        process = Child([*compose["services"][name]["command"], *options], environment, log)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        return process

    with ExitStack() as stack:
        assert started(stack, "migrate").wait() == 0
        server = started(stack, "server", "--port", "0")
        started(stack, "schedule")
        for _ in range(compose["services"]["worker"]["deploy"]["replicas"]):
            started(stack, "worker")
        wait_until(lambda: "\n" in server.printed())
        yield server.printed().splitlines()[0].split(" at ")[-1]


def test_the_processes_work_together(address: str, environment: dict[str, str], tmp_path: Path) -> None:
    made = Child(["keys", "create", "--user", "mira", "--json"], environment, tmp_path / "key.txt")
    assert made.wait() == 0
    headers = {"Authorization": f"Bearer {json.loads(made.printed())['key']}"}
    body = {"session_id": "monday", "state": said("I live in Oslo."), "queue": True}
    with httpx.Client(base_url=address, headers=headers, timeout=20) as client:
        answer = client.post("/v1/me/sessions", json=body)
        assert answer.status_code == 202
        progress = wait_for_end(client, answer.headers["Location"])
        assert progress == "done"
        assert client.get("/v1/me/facts").json()["facts"][0]["value"] == "Oslo"


def wait_for_end(client: httpx.Client, job: str) -> str:
    import time

    for _ in range(200):
        progress: str = client.get(job).json()["progress"]
        if progress != "pending":
            break
        time.sleep(0.1)
    return progress
