"""The answer that `extract-1` and `extract-2` ask for. It lacks the newer fields of a candidate. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from afterword.extractors.candidates import Answer, Candidate

FORMER_PROMPTS = frozenset({"extract-1", "extract-2"})
"""The prompts that ask for this answer, and whose transcripts show pasted text like the person's own."""

_NEWER = ("accepted_in", "flagged", "former_name")


class FormerAnswer(Answer):
    """What a model answers for one window."""

    model_config = ConfigDict(extra="ignore", title="Answer")

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the schema that these prompts were released with."""
        schema = super().model_json_schema(*args, **options)
        del schema["properties"]["secrets"]
        for name in _NEWER:
            del schema["$defs"]["Candidate"]["properties"][name]
        return schema

    def candidates(self) -> list[Candidate]:
        """Return the candidates. Whatever a person says in the last cited turn may accept an agent's words."""
        return [
            candidate.model_copy(
                update={
                    "accepted_in": max((citation.turn for citation in candidate.evidence), default=None),
                    "flagged": False,
                    "former_name": None,
                }
            )
            for candidate in self.facts
        ]


FormerAnswer.__name__ = "Answer"  # the name is sent, too


def without_newer_fields(candidate: Candidate) -> Candidate:
    """Return the candidate as such a model wrote it."""
    return candidate.model_copy(update={**dict.fromkeys(_NEWER), "flagged": False})
