"""What an agent asked for without a person's word, as the reviewing person sees and decides it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from afterword import FactMemory
from commands import Commands
from conversing import call, told


async def ask(url: str) -> None:
    memory = FactMemory(user="mira", store=url)
    await told(memory, "Hello.", call("remember", statement="The user is a pilot.", quote="I am a pilot"))
    await memory.close()


def test_a_request_is_shown_in_its_words_and_counts_once_approved(afterword: Commands, tmp_path: Path) -> None:
    asyncio.run(ask(f"sqlite:///{tmp_path}/afterword.db"))
    (held,) = json.loads(afterword("review", "--json", "--user", "mira"))["held"]
    assert (held["purpose"], held["says"]) == ("remember", ["The user is a pilot."])
    assert "The user is a pilot." in afterword("review", "--user", "mira")
    assert json.loads(afterword("facts", "--json", "--user", "mira")) == []
    afterword("review", "--approve", f"run:{held['id']}", "--user", "mira")
    (fact,) = json.loads(afterword("facts", "--json", "--user", "mira"))
    assert fact["statement"] == "The user is a pilot."
