"""Removes candidates whose content was forgotten after it was said: only their number is kept."""

from __future__ import annotations

from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Rejection
from afterword.extractors.grounding import DETAILS, Grounding, Reason
from afterword.facts.assertions import Kind
from afterword.facts.transcripts import Transcript
from afterword.privacy.blanking import FORGOTTEN
from afterword.privacy.tombstones import Forgotten

_BLANK = Candidate(
    kind=Kind.ENTITY, subject=FORGOTTEN, attribute=FORGOTTEN, value=FORGOTTEN, statement=FORGOTTEN, evidence=[]
)


def withhold_forgotten(grounding: Grounding, transcript: Transcript, forgotten: Forgotten) -> Grounding:
    """Return what may be stored of a window's statements. Each forgotten one becomes a rejection without its words."""
    if forgotten.is_empty:
        return grounding
    times = {turn.number: turn.said_at for turn in transcript.turns}

    def is_forgotten(candidate: Candidate) -> bool:
        said_at = (times.get(citation.turn) for citation in candidate.evidence)
        last_said_at = max((at for at in said_at if at is not None), default=None)
        return forgotten.is_slot_forgotten(candidate.subject, candidate.attribute, candidate.value, last_said_at)

    blank = Rejection(_BLANK, Reason.FORGOTTEN.value, DETAILS[Reason.FORGOTTEN])
    assertions = tuple(assertion for assertion in grounding.assertions if not forgotten.covers(assertion))
    rejections = [blank if is_forgotten(rejection.candidate) else rejection for rejection in grounding.rejections]
    return Grounding(assertions, (*rejections, *[blank] * (len(grounding.assertions) - len(assertions))))
