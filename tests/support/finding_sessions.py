"""Ten conversations in which agents find things, or only seem to, and what of each is a finding.

`python tests/support/finding_sessions.py FILE` writes the requests for them with their keys, to be answered by a model
and recorded in tests/recorded/prompts.jsonl as objects of `key`, `model` and `reply`. The test of them fails without.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from afterword.extractors.extractor import Window
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.testing import Reply, ScriptedEndpoint, request_key
from afterword.extractors.windows import cut_windows
from afterword.facts.transcripts import Role, Transcript, Turn

BEGUN = datetime(2026, 3, 2, 9, tzinfo=UTC)
AGENTS = ("researcher",)
USER, AGENT, TOOL, NOTES, WRITER = "user", "researcher", "browse", "notes", "writer"
ROLES = {USER: Role.HUMAN, AGENT: Role.AGENT, TOOL: Role.TOOL, NOTES: Role.MEMORY, WRITER: Role.AGENT}


@dataclass(frozen=True)
class FindingSession:
    """One conversation. `expected` are words of each of its findings; `advice` says that it is asked for."""

    name: str
    turns: tuple[tuple[str, str], ...]
    expected: tuple[str, ...]
    advice: bool = False

    @property
    def transcript(self) -> Transcript:
        turns = tuple(
            Turn(number, speaker, ROLES[speaker], text, BEGUN + timedelta(minutes=number))
            for number, (speaker, text) in enumerate(self.turns, 1)
        )
        people = dict.fromkeys(turn.speaker for turn in turns if turn.role is Role.HUMAN)
        return Transcript(turns, layout="test", humans=tuple(people))

    @property
    def window(self) -> Window:
        (window,) = cut_windows(self.transcript, ("user",))
        return window


def read_finding_sessions() -> tuple[FindingSession, ...]:
    """Return the conversations of tests/recorded/finding_sessions.jsonl."""
    file = Path(__file__).parent.parent / "recorded" / "finding_sessions.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return tuple(
        FindingSession(row["name"], tuple(map(tuple, row["turns"])), tuple(row["expected"]), row["advice"])
        for row in rows
    )


SESSIONS = read_finding_sessions()


async def written_requests() -> list[dict[str, object]]:
    """Return the request for each conversation, with its key."""
    asked: list[dict[str, object]] = []
    async with ScriptedEndpoint(lambda _request: Reply('{"findings": []}')) as endpoint:
        settings = ModelSettings("relay", base_url=endpoint.base_url, api_key="local", max_retries=0)
        async with ModelClient(settings) as client:
            for session in SESSIONS:
                await ModelExtractor(client).extract_findings(session.window, AGENTS, advice=session.advice)
        asked += [{"key": request_key(request), "request": request} for request in endpoint.requests]
    return asked


if __name__ == "__main__":
    lines = [json.dumps(entry, ensure_ascii=False) for entry in asyncio.run(written_requests())]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
