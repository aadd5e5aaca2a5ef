"""Hold back what was forgotten since it was said: of a candidate, only that there was one is kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Rejection
from afterword.extractors.grounding import DETAILS, Grounding, Reason
from afterword.facts.assertions import Assertion, Kind
from afterword.facts.transcripts import Transcript
from afterword.privacy.blanking import FORGOTTEN
from afterword.privacy.tombstones import Forgotten

_BLANK = Candidate(
    kind=Kind.ENTITY, subject=FORGOTTEN, attribute=FORGOTTEN, value=FORGOTTEN, statement=FORGOTTEN, evidence=[]
)


def withheld(found: Grounding, transcript: Transcript, forgotten: Forgotten) -> Grounding:
    """Return what may be kept of what was grounded; what was forgotten is a rejection without words."""
    if forgotten.is_empty:
        return found
    said = {turn.number: turn.said_at for turn in transcript.turns}
    kept: list[Assertion] = [one for one in found.assertions if not forgotten.covers(one)]
    held = len(found.assertions) - len(kept)
    rejections = [_nothing() if _is_forgotten(one.candidate, said, forgotten) else one for one in found.rejections]
    return Grounding(tuple(kept), (*rejections, *(_nothing() for _ in range(held))))


def _nothing() -> Rejection:
    return Rejection(_BLANK, Reason.FORGOTTEN.value, DETAILS[Reason.FORGOTTEN])


def _is_forgotten(one: Candidate, said: dict[int, datetime | None], forgotten: Forgotten) -> bool:
    times: Sequence[datetime] = [at for item in one.evidence if (at := said.get(item.turn)) is not None]
    return forgotten.is_slot_forgotten(one.subject, one.attribute, one.value, max(times, default=None))
