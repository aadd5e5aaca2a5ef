"""The service as a process: it is killed under writes, and programs of other languages use it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from commands import clean_environment

KILLS = 5


@pytest.fixture(params=["file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store_url"))
    return f"sqlite:///{tmp_path}/afterword.db"


def environment(url: str) -> dict[str, str]:
    return {**clean_environment(), "AFTERWORD_STORE__URL": url, "AFTERWORD_EMBEDDING__KIND": "none"}


def afterword_command(url: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "afterword", *arguments]
    return subprocess.run(command, env=environment(url), capture_output=True, text=True, check=True).stdout


@contextmanager
def served(url: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the service as a process, and yield it with its address."""
    command = [sys.executable, "-m", "afterword", "serve", "--port", "0"]
    process = subprocess.Popen(command, env=environment(url), cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split(" at ")[-1].strip()
        for _ in range(200):
            try:
                if httpx.get(f"{address}/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.05)
        yield process, address
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def write(client: httpx.Client, number: int) -> httpx.Response:
    body, repeated = {"content": f"I like tea number {number}."}, {"Idempotency-Key": f"write-{number}"}
    return client.post("/v1/memory/remember", json=body, headers=repeated)


def write_until_answered(client: httpx.Client, number: int) -> httpx.Response:
    """Write as a careful client does: again, while a server that was killed still holds the request."""
    for _ in range(60):
        answer = write(client, number)
        if answer.status_code != 409:
            break
        time.sleep(int(answer.headers["Retry-After"]))
    return answer


def test_what_was_acknowledged_survives_kills_and_nothing_is_doubled(url: str, tmp_path: Path) -> None:
    key = json.loads(afterword_command(url, "keys", "create", "--user", "mira", "--json"))["key"]
    headers, acknowledged, number = {"Authorization": f"Bearer {key}"}, dict[int, str](), 0
    for kill in range(KILLS):
        with (
            served(url, tmp_path) as (process, address),
            httpx.Client(base_url=address, headers=headers, timeout=10) as client,
        ):
            killer = threading.Timer(0.2 + 0.037 * kill, process.kill)
            killer.start()
            with suppress(httpx.TransportError):
                while True:
                    acknowledged[number] = write_until_answered(client, number).json()["id"]
                    number += 1
            killer.join()
    with (
        served(url, tmp_path) as (process, address),
        httpx.Client(base_url=address, headers=headers, timeout=10) as client,
    ):
        for written in range(number + 1):
            answer = write_until_answered(client, written)
            assert answer.status_code == 200
            assert acknowledged.get(written, answer.json()["id"]) == answer.json()["id"]
        facts = client.get("/v1/me/facts", params={"limit": 500}).json()["facts"]
        expected = [f"I like tea number {written}." for written in range(number + 1)]
        assert sorted(fact["statement"] for fact in facts) == sorted(expected)
        assert {fact["support"] for fact in facts} == {1}
        assert client.get("/v1/me/runs", params={"limit": 1}).json()["total"] == number + 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM)


def blocks(repository: Path, language: str) -> list[str]:
    page = (repository / "docs" / "service.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_examples_of_the_page_run(repository: Path, tmp_path: Path) -> None:
    """The program in Python and the one in TypeScript remember and recall against a live service."""
    url = f"sqlite:///{tmp_path}/afterword.db"
    key = json.loads(afterword_command(url, "keys", "create", "--user", "mira", "--json"))["key"]
    (python,) = blocks(repository, "python")
    (typescript,) = blocks(repository, "typescript")
    assert len(python.splitlines()) <= 30
    with served(url, tmp_path) as (_, address):
        told = {**os.environ, "MEMORY_URL": address, "MEMORY_KEY": key}
        done = subprocess.run([sys.executable, "-c", python], env=told, capture_output=True, text=True, check=True)
        assert "Oslo" in done.stdout
        node = shutil.which("node")
        if node is None:
            pytest.skip("node is not installed: the TypeScript example was not run")
        # This version of node may not know types: without them the program is JavaScript.
        plain = re.sub(
            r"^type .*\n", "", re.sub(r": (string|Promise<Memory\[\]>|Memory\[\])", "", typescript), flags=re.M
        )
        (tmp_path / "example.mjs").write_text(plain)
        done = subprocess.run([node, tmp_path / "example.mjs"], env=told, capture_output=True, text=True, check=False)
        assert "Oslo" in done.stdout, done.stderr
