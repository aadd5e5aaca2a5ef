"""Candidates: the facts that an extractor proposes, with the turns and words that support them.

These pydantic models are the answer format of a language model, small enough for local models. Their docstrings and
field descriptions are part of the prompt. `grounding` checks every candidate before it is used.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Any, cast

from pydantic import BaseModel, Field, ValidatorFunctionWrapHandler, field_validator

from afterword.facts.assertions import Cue, Kind, SpeechAct
from afterword.privacy.policy import Privacy

IMPOSSIBLE_DATE = date.min
"""Stands in a date field for an answer that is not a date."""


class Modality(StrEnum):
    """How something was said. Only `stated` becomes an assertion."""

    STATED = "stated"
    CONSIDERED = "considered"
    ASKED = "asked"
    JOKING = "joking"
    ROLE_PLAY = "role_play"
    REPORTED = "reported"


class Citation(BaseModel):
    """Words copied from one turn."""

    turn: int = Field(description="The number of the turn.")
    quote: str = Field(description="Words copied from that turn, unchanged and unbroken.")


class Candidate(BaseModel):
    """One proposed fact, or one thing taken back."""

    kind: Kind
    subject: str = Field(description="'user' for the owner of the memory, else the name of whom or what it is about.")
    attribute: str = Field(description="Which side of the subject, in short snake_case.")
    value: str = Field(description="The value alone, in as few words as possible.")
    statement: str = Field(description="One self-contained sentence in the third person.")
    evidence: list[Citation] = Field(description="The turns and words that say it.")
    modality: Modality = Modality.STATED
    act: SpeechAct = SpeechAct.STATE
    cue: Cue | None = None
    valid_from: date | None = None
    valid_to: date | None = None
    limited_to: str | None = None
    outcome: str | None = None
    accepted_in: int | None = Field(None, description="The turn in which a person says yes to a cited agent's words.")
    flagged: bool = False
    former_name: str | None = None

    @field_validator("valid_from", "valid_to", mode="wrap")
    @classmethod
    def _read_date(cls, answered: Any, read: ValidatorFunctionWrapHandler) -> date | None:
        # One impossible date must not make the whole answer invalid. Grounding rejects only the candidate that has it.
        try:
            return date.fromisoformat(answered) if isinstance(answered, str) else cast(date | None, read(answered))
        except ValueError:
            return IMPOSSIBLE_DATE


class Answer(BaseModel):
    """What a model answers for one window."""

    facts: list[Candidate]
    secrets: list[Citation] = Field([], description="Secrets that stand in the turns, unmasked.")
    off_record: list[int] = Field([], description="Turns of people that tell what they ask not to keep.")


def mask_candidate(candidate: Candidate, privacy: Privacy) -> Candidate:
    """Return the candidate with every secret masked. A model may copy a secret or invent one."""
    texts = (
        candidate.value,
        candidate.statement,
        candidate.subject,
        candidate.limited_to or "",
        candidate.outcome or "",
        candidate.former_name or "",
    )
    quotes = [citation.quote for citation in candidate.evidence]
    masked_texts = privacy.mask_value_and_others(candidate.attribute, *texts, candidate.attribute, *quotes)
    value, statement, subject, limited_to, outcome, former_name, attribute, *quotes = masked_texts
    evidence = [
        Citation(turn=citation.turn, quote=quote) for citation, quote in zip(candidate.evidence, quotes, strict=True)
    ]
    masked = {"value": value, "statement": statement, "subject": subject, "attribute": attribute, "evidence": evidence}
    optional = {"limited_to": limited_to or None, "outcome": outcome or None, "former_name": former_name or None}
    return candidate.model_copy(update={**masked, **optional})
