"""The processes of compose.yaml, with its settings, where no container runtime is needed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
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


def health_check(repository: Path) -> list[str]:
    """Return the command by which a container runtime asks whether the service is ready."""
    image = (repository / "Dockerfile").read_text(encoding="utf-8")
    (command,) = re.findall(r"HEALTHCHECK [^[]*CMD (\[.*\])", image)
    python, *arguments = json.loads(command)
    assert python == "python"
    return [sys.executable, *arguments]


def run(command: list[str]) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_the_server_finds_the_database(compose: dict[str, Any]) -> None:
    """The address in the settings names the service, the user and the database that PostgreSQL is started with."""
    database, url = compose["services"]["database"]["environment"], compose["x-afterword"]["environment"]
    address = urlsplit(url["AFTERWORD_STORE__URL"].replace("${POSTGRES_PASSWORD:?write it into .env}", "secret"))
    assert (address.username, address.password) == (database["POSTGRES_USER"], "secret")
    assert (address.hostname, address.path) == ("database", f"/{database['POSTGRES_DB']}")
    assert database["POSTGRES_PASSWORD"] == "${POSTGRES_PASSWORD:?write it into .env}"
    assert compose["services"]["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    others = [compose["services"][name]["depends_on"] for name in ("server", "schedule", "worker")]
    assert others == [{"migrate": {"condition": "service_completed_successfully"}}] * 3


def test_the_processes_work_together(
    address: str, environment: dict[str, str], repository: Path, tmp_path: Path
) -> None:
    made = Child(["keys", "create", "--user", "mira", "--json"], environment, tmp_path / "key.txt")
    assert made.wait() == 0
    headers = {"Authorization": f"Bearer {json.loads(made.printed())['key']}"}
    body = {"session_id": "monday", "state": said("I live in Oslo."), "queue": True}
    check = health_check(repository)
    assert run([part.replace("http://127.0.0.1:8321", address) for part in check]) == 0
    assert run([part.replace("8321", "1") for part in check]) != 0
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
