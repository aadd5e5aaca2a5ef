"""An extractor for tests that understands `home: Graz` and `forget home: Graz`, several in one turn with "; "."""

from __future__ import annotations

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Window
from afterword.facts.assertions import Kind, SpeechAct
from afterword.facts.transcripts import Role


def find(window: Window) -> list[Candidate]:
    """Return what people say in the window."""
    found = []
    for turn in window.turns:
        for part in turn.text.split("; ") if turn.role is Role.HUMAN else ():
            asks, _, rest = part.rpartition("forget ")
            attribute, _, value = rest.partition(": ")
            if value.strip():
                found.append(
                    Candidate(
                        kind=Kind.ENTITY,
                        subject="user",
                        attribute=attribute,
                        value=value.strip(),
                        statement=f"The user's {attribute} is {value.strip()}.",
                        evidence=[Citation(turn=turn.number, quote=turn.text)],
                        act=SpeechAct.ERASE if asks or part.startswith("forget") else SpeechAct.STATE,
                    )
                )
    return found
