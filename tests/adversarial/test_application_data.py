"""What an application stores beside the words of a message goes with these words."""

from __future__ import annotations

import json
from typing import Any

from afterword.privacy.off_record import hide_off_record_in_state
from afterword.privacy.record_requests import Markers
from afterword.privacy.state_blanking import blank_saved_state

CREATED = "2026-03-02T10:00:00+00:00"
NOTED = {
    "created_at": CREATED,
    "_attribution": {"source_id": "notes"},
    "home_town": "by the old harbour",
    "visits": 7341,
}


def agent_framework(text: str) -> dict[str, Any]:
    contents = [{"type": "text", "text": text, "additional_properties": {"visits": 7341}}]
    return {"type": "message", "role": "user", "contents": contents, "additional_properties": NOTED}


def autogen(text: str) -> dict[str, Any]:
    return {"type": "UserMessage", "source": "user", "content": text, "metadata": NOTED}


def test_off_the_record_it_is_not_saved() -> None:
    for message in (agent_framework, autogen):
        state = {"messages": [message("Off the record, I live at the harbour."), message("I like tea.")]}
        hidden, kept = hide_off_record_in_state(state, Markers(), {"user"})["messages"]
        for word in ("harbour", "home_town", "7341"):
            assert word not in json.dumps(hidden)
        assert kept == message("I like tea.")
    assert hide_off_record_in_state(
        {"messages": [agent_framework("Off the record, I live at the harbour.")]}, Markers(), {"user"}
    )["messages"][0]["additional_properties"].keys() == {"created_at", "_attribution"}


def test_it_is_forgotten_with_the_words() -> None:
    for message in (agent_framework, autogen):
        state = {"messages": [message("I live in Oslo."), message("I like tea.")]}
        blanked, kept = blank_saved_state(state, lambda text: text.replace("Oslo", "[forgotten]"))["messages"]
        assert "[forgotten]" in json.dumps(blanked)
        for word in ("harbour", "home_town", "7341"):
            assert word not in json.dumps(blanked)
        assert kept == message("I like tea.")
