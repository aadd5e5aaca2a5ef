"""Sessions of agents that find things, and an extractor that reads `Found out (topic): ...` in an agent's words."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlmodel import SQLModel

from afterword.extractors.agent_findings import FindingCandidate, FindingsExtraction
from afterword.extractors.candidates import Citation
from afterword.extractors.extractor import Usage, Window
from afterword.extractors.testing import OracleExtractor
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store.database.engine import Store
from deciding_words import find

LENA = Scope.user("lena")
PAGE, NOTES = "page", "notes"
_FOUND = re.compile(r"(?P<verb>Found out|Advice) \((?P<topic>[^)]*)\): (?P<statement>.+)")

Propose = Callable[[Window], Sequence[FindingCandidate]]


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def proposed(window: Window) -> list[FindingCandidate]:
    """Return what the agents of a window say they found."""
    return [
        FindingCandidate(
            kind="advice" if match["verb"] == "Advice" else "finding",
            statement=match["statement"],
            topic=match["topic"],
            evidence=[Citation(turn=turn.number, quote=match["statement"])],
        )
        for turn in window.turns
        if turn.role is Role.AGENT
        for match in _FOUND.finditer(turn.text)
    ]


class Researching(OracleExtractor):
    """Extracts the facts of `deciding_words`, and the findings that `propose` returns. `asked` holds the windows."""

    def __init__(self, propose: Propose = proposed) -> None:
        super().__init__(find)
        self.asked: list[Window] = []
        self._propose = propose

    @property
    def findings_version(self) -> str:
        return "oracle:findings"

    async def extract_findings(self, window: Window, agents: Sequence[str], *, advice: bool) -> FindingsExtraction:
        assert agents
        assert advice in (True, False)
        self.asked.append(window)
        return FindingsExtraction(tuple(self._propose(window)), Usage(calls=1))


def state(*said: tuple[str, str]) -> dict[str, Any]:
    """Return a saved state of these speakers: `user`, agents, `page` (a tool result) and `notes` (injected memory)."""
    messages: list[dict[str, Any]] = []
    for number, (speaker, words) in enumerate(said):
        if speaker == "user":
            messages.append({"content": words, "source": "user", "type": "UserMessage"})
        elif speaker == PAGE:
            result = {"content": words, "call_id": str(number), "name": "browse", "is_error": False}
            messages.append({"content": [result], "type": "FunctionExecutionResultMessage"})
        elif speaker == NOTES:
            messages.append({"content": words, "type": "SystemMessage"})
        else:
            messages.append({"content": words, "source": speaker, "type": "AssistantMessage"})
    return {"type": "AssistantAgentState", "llm_context": {"messages": messages}}


async def process(
    store: Store,
    session_id: str,
    on: int,
    *said: tuple[str, str],
    scope: Scope = LENA,
    extractor: OracleExtractor | None = None,
    **more: Any,
) -> SessionOutcome:
    saved = Saved(scope, session_id, state=state(*said), started_at=day(on), ended_at=day(on))
    return await process_session(store, saved, extractor=extractor or Researching(), **more)


async def everything(store: Store) -> str:
    """Every value of every table, states unpacked, and every byte of a SQLite store's files."""
    values: list[str] = []
    with store.connecting(writing=False) as connection:
        for table in SQLModel.metadata.sorted_tables:
            for row in connection.execute(table.select()).all():
                values += [zlib.decompress(value).decode() if isinstance(value, bytes) else str(value) for value in row]
    if store.path is not None:
        values += [file.read_bytes().decode("latin-1") for file in store.path.parent.glob(f"{store.path.name}*")]
    return "\n".join(values).casefold()
