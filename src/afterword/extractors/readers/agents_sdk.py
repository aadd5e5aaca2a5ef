"""The state of a run of the OpenAI Agents SDK. The items of its sessions are a list of messages with roles."""

from __future__ import annotations

from typing import Any

from afterword.extractors.readers.utterances import JsonObject


def run_items(state: JsonObject) -> list[Any] | None:
    """Return what a run began with and what it gave (`RunState.to_json`); None for any other object."""
    if "$schemaVersion" not in state or "original_input" not in state:
        return None
    began = state["original_input"]
    asked = [{"role": "user", "content": began}] if isinstance(began, str) else _listed(began)
    # `generated_items` may be shortened for the next agent.
    generated = _listed(state.get("session_items")) or _listed(state.get("generated_items"))
    return asked + [each.get("raw_item") if isinstance(each, dict) else each for each in generated]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
