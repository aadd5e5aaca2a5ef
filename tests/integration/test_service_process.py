"""The service as a process: it is killed under writes, and programs of other languages use it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
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


def test_what_was_acknowledged_survives_kills_and_nothing_is_doubled(url: str, tmp_path: Path) -> None:
    key = json.loads(afterword_command(url, "keys", "create", "--user", "mira", "--json"))["key"]
    acknowledged: dict[str, str] = {}
    written = 0
    for kill in range(KILLS):
        with served(url, tmp_path) as (process, address):
            headers = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=address, headers=headers) as client:
                deadline = time.monotonic() + 0.3 + 0.1 * kill
                process_ended = False
                while not process_ended:
                    content = f"I like tea number {written}."
                    body, repeated = {"content": content}, {"Idempotency-Key": f"write-{written}"}
                    if time.monotonic() > deadline:
                        # The kill falls into the next write, sooner or later in it.
                        killer = subprocess.Popen(
                            [sys.executable, "-c", f"import os,time; time.sleep({0.002 * kill}); os.kill({process.pid}, 9)"]
                        )
                        process_ended = True
                    try:
                        answer = client.post("/v1/memory/remember", json=body, headers=repeated)
                        acknowledged[content] = answer.json()["id"]
                        written += 1
                    except httpx.TransportError:
                        process_ended = True
                if time.monotonic() > deadline:
                    killer.wait()
    with served(url, tmp_path) as (process, address):
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=address, headers=headers, timeout=10) as client:
            # Whatever was asked is asked again, as a careful client does.
            for number in range(written + 1):
                body, repeated = {"content": f"I like tea number {number}."}, {"Idempotency-Key": f"write-{number}"}
                answer = client.post("/v1/memory/remember", json=body, headers=repeated)
                for _ in range(100):
                    if answer.status_code != 409:
                        break
                    time.sleep(1)  # the process that was killed still holds it
                    answer = client.post("/v1/memory/remember", json=body, headers=repeated)
                assert answer.status_code == 200
                assert acknowledged.get(body["content"], answer.json()["id"]) == answer.json()["id"]
            facts = client.get("/v1/me/facts", params={"limit": 500}).json()
            runs = client.get("/v1/me/runs", params={"limit": 1}).json()["total"]
            assert sorted(fact["statement"] for fact in facts["facts"]) == sorted(
                f"I like tea number {number}." for number in range(written + 1)
            )
            assert runs == written + 1
            assert {fact["support"] for fact in facts["facts"]} == {1}
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM)
    assert uuid.uuid4()


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
        # Without its types, which node of this version may not know, the program is JavaScript.
        (tmp_path / "example.mjs").write_text(re.sub(r"(\w)\??: [A-Z]?[\w<>\[\], {};:]+(?=[,)=]| \{$)", r"\1", typescript))
        done = subprocess.run([node, tmp_path / "example.mjs"], env=told, capture_output=True, text=True, check=False)
        assert "Oslo" in done.stdout, done.stderr
