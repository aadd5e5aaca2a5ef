"""What an agent asked for without a person's word, as the reviewing person sees and decides it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from afterword import FactMemory
from conversing import call, told


def run(folder: Path, *arguments: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AFTERWORD_")}
    command = [sys.executable, "-m", "afterword", *arguments, "--user", "mira"]
    return subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=True, timeout=120
    ).stdout


async def test_a_request_is_shown_in_its_words_and_counts_once_approved(tmp_path: Path) -> None:
    memory = FactMemory(user="mira", store=f"sqlite:///{tmp_path}/afterword.db")
    await told(memory, "Hello.", call("remember", statement="The user is a pilot.", quote="I am a pilot"))
    (held,) = json.loads(run(tmp_path, "review", "--json"))["held"]
    assert (held["purpose"], held["says"]) == ("remember", ["The user is a pilot."])
    assert "The user is a pilot." in run(tmp_path, "review")
    assert json.loads(run(tmp_path, "facts", "--json")) == []
    run(tmp_path, "review", "--approve", f"run:{held['id']}")
    assert [one["statement"] for one in json.loads(run(tmp_path, "facts", "--json"))] == ["The user is a pilot."]
