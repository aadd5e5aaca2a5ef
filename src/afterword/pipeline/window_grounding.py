"""Grounds the candidates of a window, within the bound of what is kept of a session and without what was forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from afterword.extractors.candidate_masking import mask_candidates
from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Rejection, Window
from afterword.extractors.grounding import DETAILS, Grounding, Reason, ground
from afterword.extractors.named_secrets import NamedSecrets
from afterword.facts.assertions import Kind
from afterword.facts.transcripts import Transcript
from afterword.pipeline.intake import PreparedSession, Saved
from afterword.privacy.blanking import FORGOTTEN
from afterword.privacy.policy import Privacy
from afterword.privacy.tombstones import Forgotten
from afterword.store.proposals import WindowReading

NOT_EXAMINED = "(not examined)"
"""Stands in place of the words of a candidate that was not examined: they may hold a secret."""

_BLANK = Candidate(
    kind=Kind.ENTITY, subject=FORGOTTEN, attribute=FORGOTTEN, value=FORGOTTEN, statement=FORGOTTEN, evidence=[]
)

_NOT_EXAMINED = _BLANK.model_copy(update=dict.fromkeys(("subject", "attribute", "value", "statement"), NOT_EXAMINED))


def ground_window(
    candidates: Sequence[Candidate],
    prepared: PreparedSession,
    *,
    saved: Saved,
    privacy: Privacy,
    named: NamedSecrets,
    most: int,
) -> Grounding:
    """Return the grounded candidates of a window of a session, of which at most `most` statements can be kept.

    To examine a candidate takes time. So of one window at most twice as many are examined as are kept of a whole
    session, and none once nothing more can be kept. The others are rejected as too many, without their words.
    """
    transcript = replace(prepared.transcript, turns=named.masked_turns(prepared.transcript.turns))
    examined = candidates[: 2 * privacy.facts_per_session if most else 0]
    grounding = ground(
        named.masked_candidates(mask_candidates(examined, privacy)),
        transcript,
        scope=saved.scope,
        session_id=saved.session_id,
        owners=prepared.owners,
    )
    checked = _withhold_forgotten(grounding, transcript, prepared.stored.forgotten)
    return replace(checked, rejections=(*checked.rejections, *map(_not_examined, candidates[len(examined) :])))


def window_reading(key: str, window: Window, grounding: Grounding) -> WindowReading:
    """Return what was read in a window as it is stored, under the window's key."""
    refused = tuple(
        (rejection.reason, rejection.candidate.statement, rejection.detail) for rejection in grounding.rejections
    )
    return WindowReading(key, window.turns[0].number, window.turns[-1].number, grounding.assertions, refused)


def limited_reading(reading: WindowReading, most: int) -> WindowReading:
    """Return a reading with at most this many statements; the others are among the refused ones."""
    surplus = reading.assertions[most:]
    if not surplus:
        return reading
    reason, detail = Reason.TOO_MANY.value, DETAILS[Reason.TOO_MANY]
    left_out = tuple((reason, assertion.statement, detail) for assertion in surplus)
    return replace(reading, assertions=reading.assertions[:most], rejections=(*left_out, *reading.rejections))


def _not_examined(candidate: Candidate) -> Rejection:
    turn = min((citation.turn for citation in candidate.evidence), default=None)
    place = f"turn {turn}: " if turn else ""
    return Rejection(_NOT_EXAMINED, Reason.TOO_MANY.value, f"{place}{DETAILS[Reason.TOO_MANY]}")


def _withhold_forgotten(grounding: Grounding, transcript: Transcript, forgotten: Forgotten) -> Grounding:
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
