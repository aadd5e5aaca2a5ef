"""Saved states of conversations, and manifests that say whose they are, as files."""

from __future__ import annotations

import json
from pathlib import Path


def write_state(path: Path, *said: str) -> None:
    """Write the saved state of an AssistantAgent to whom these things were said."""
    messages = [{"content": text, "source": "user", "type": "UserMessage"} for text in said]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"type": "AssistantAgentState", "llm_context": {"messages": messages}}))


def write_manifest(folder: Path, *saved: tuple[str, ...]) -> None:
    """Write Mira's sessions and their manifest; of each its id, when it began and ended, and what was said."""
    entries = []
    for session_id, at, *said in saved:
        write_state(folder / f"{session_id}.json", *said)
        entries.append({"session_id": session_id, "user_id": "mira", "path": f"{session_id}.json"})
        entries[-1] |= {"started_at": at, "ended_at": at}
    (folder / "manifest.json").write_text(json.dumps(entries))
