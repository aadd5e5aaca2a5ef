"""Reading one window of a session: extracting candidates, grounding them, and repairing refused ones once.

A window that is too long for the model is read in halves. The number of statements of a session is limited, and
forgotten statements are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from afterword import telemetry
from afterword.extractors.candidates import Candidate
from afterword.extractors.errors import AnswerCut, ExtractionError
from afterword.extractors.extractor import Extraction, Extractor, Rejection, Usage, Window
from afterword.extractors.grounding import Grounding, ground
from afterword.extractors.rejection_reasons import FINAL_REASONS, REASON_DETAILS, RejectionReason
from afterword.extractors.windows import halve_window
from afterword.extractors.words_called_private import WordsCalledPrivate
from afterword.facts.assertions import Kind
from afterword.facts.transcripts import Transcript
from afterword.pipeline.intake import PreparedSession, Saved
from afterword.privacy.blanking import FORGOTTEN
from afterword.privacy.policy import Privacy
from afterword.privacy.tombstones import ForgottenContent
from afterword.store.proposals import WindowReading

GroundCandidates = Callable[[Sequence[Candidate]], Grounding]
"""A function that checks the candidates of a window against the turns of its session."""

NOT_EXAMINED = "(not examined)"
"""Stands in place of the words of a candidate that was not examined: they may hold a secret."""

_BLANK = Candidate(
    kind=Kind.ENTITY, subject=FORGOTTEN, attribute=FORGOTTEN, value=FORGOTTEN, statement=FORGOTTEN, evidence=[]
)

_NOT_EXAMINED = _BLANK.model_copy(update=dict.fromkeys(("subject", "attribute", "value", "statement"), NOT_EXAMINED))


@dataclass
class _CachedAnswer:
    window: Window
    extraction: Extraction | AnswerCut
    repair: Extraction | None = None


class WindowReader:
    """Reads the windows of one session. If a window is read again with private words masked, the answer is reused.

    `usage` is the cost of all calls so far, failed ones included. `called_private` is what the model called private.
    `splits` counts the windows that were too long for the model.
    """

    def __init__(self, extractor: Extractor, privacy: Privacy) -> None:
        self.called_private: WordsCalledPrivate = WordsCalledPrivate(privacy)
        self.splits: int = 0
        self.usage: Usage = Usage()
        self._extractor, self._privacy = extractor, privacy
        self._answered: dict[int, list[_CachedAnswer]] = {}

    def drop_answers(self) -> None:
        """Forget all answers, and what they call private: turns have other numbers now. The cost is kept."""
        self.called_private = WordsCalledPrivate(self._privacy)
        self._answered.clear()

    async def read(self, window: Window, ground: GroundCandidates) -> Grounding:
        """Return the grounded statements of a window. The extractor may repair refused candidates once.

        A window is read in halves if it or its answer is too long for the model. Raises an `ExtractionError` if there
        was no answer, and `AnswerCut` only if a part that cannot be halved is still too long.
        """
        try:
            return await self._read_whole_window(window, ground)
        except AnswerCut as cut:
            halves = halve_window(window)
            if halves is None:
                first, last = window.turns[0].number, window.turns[-1].number
                raise AnswerCut(f"{cut} (turns {first} to {last} alone are too long already)", cut.usage) from None
        return _join_groundings([await self.read(half, ground) for half in halves])

    async def _read_whole_window(self, window: Window, ground: GroundCandidates) -> Grounding:
        grounding = _run_grounding(ground, await self._candidates(telemetry.Stage.EXTRACT, self._extract(window)))
        repairable = [rejection for rejection in grounding.rejections if rejection.reason not in FINAL_REASONS]
        if not repairable:
            return grounding
        candidates = await self._candidates(telemetry.Stage.REPAIR, self._repair(window, repairable))
        return _join_groundings([grounding, Grounding(_run_grounding(ground, candidates).assertions, ())])

    async def _candidates(self, stage: telemetry.Stage, answer: Awaitable[Extraction]) -> Sequence[Candidate]:
        with telemetry.stage(stage):
            try:
                extraction = await answer
            except ExtractionError as error:
                self.usage += error.usage
                raise
            telemetry.note(candidates=len(extraction.candidates))
        self.usage += extraction.usage
        return extraction.candidates

    async def _extract(self, window: Window) -> Extraction:
        """Return the answer to the window, from the cache if it was requested before. Raises an `ExtractionError`."""
        known = self._cached_answer(window)
        if known is not None:
            if isinstance(known.extraction, AnswerCut):
                raise AnswerCut(str(known.extraction))
            return Extraction(known.extraction.candidates)
        answers = self._answered.setdefault(window.ordinal, [])
        try:
            extraction = await self._extractor.extract(window)
        except AnswerCut as cut:
            answers.append(_CachedAnswer(window, cut))
            self.splits += 1
            raise
        answers.append(_CachedAnswer(window, extraction))
        self.called_private.add(extraction, (*window.context, *window.turns))
        return extraction

    async def _repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Return the repaired candidates, from the cache if they were requested before. Raises an `ExtractionError`."""
        known = self._cached_answer(window)
        if known is not None and known.repair is not None:
            return Extraction(known.repair.candidates)
        try:
            extraction = await self._extractor.repair(window, rejections)
        except AnswerCut:
            self.splits += 1
            raise
        self.called_private.add(extraction, (*window.context, *window.turns))
        if known is not None:
            known.repair = extraction
        return extraction

    def _cached_answer(self, window: Window) -> _CachedAnswer | None:
        public, answers = self._window_without_private_words(window), self._answered.get(window.ordinal, ())
        return next(
            (answered for answered in answers if self._window_without_private_words(answered.window) == public), None
        )

    def _window_without_private_words(self, window: Window) -> Window:
        shown = self.called_private.hide_in_turns((*window.context, *window.turns))
        return replace(window, context=shown[: len(window.context)], turns=shown[len(window.context) :])


def _run_grounding(ground: GroundCandidates, candidates: Sequence[Candidate]) -> Grounding:
    with telemetry.stage(telemetry.Stage.GROUND, candidates=len(candidates)):
        grounding = ground(candidates)
        telemetry.note(assertions=len(grounding.assertions), refused=len(grounding.rejections))
    return grounding


def _join_groundings(parts: Sequence[Grounding]) -> Grounding:
    assertions = {assertion.id: assertion for part in parts for assertion in part.assertions}
    return Grounding(tuple(assertions.values()), tuple(rejection for part in parts for rejection in part.rejections))


def ground_window(
    candidates: Sequence[Candidate],
    prepared: PreparedSession,
    *,
    saved: Saved,
    privacy: Privacy,
    private: WordsCalledPrivate,
    most: int,
) -> Grounding:
    """Ground the candidates of a window, and return the statements and the rejected candidates.

    `most` is how many more statements of the session can be kept. Since examining a candidate takes time, at most twice
    `facts_per_session` candidates are examined, and none if `most` is 0. The others are rejected as too many, without
    their words.
    """
    transcript = replace(prepared.transcript, turns=private.hide_in_turns(prepared.transcript.turns))
    examined = candidates[: 2 * privacy.facts_per_session if most else 0]
    grounding = ground(
        [private.mask_in_candidate(candidate) for candidate in examined],
        transcript,
        scope=saved.scope,
        session_id=saved.session_id,
        owners=prepared.owners,
    )
    checked = _withhold_forgotten(grounding, transcript, prepared.stored.forgotten)
    return replace(checked, rejections=(*checked.rejections, *map(_reject_unexamined, candidates[len(examined) :])))


def window_reading(key: str, window: Window, grounding: Grounding) -> WindowReading:
    """Return the statements and rejected candidates of a window in the form that is stored, under the window's key."""
    refused = tuple(
        (rejection.reason, rejection.candidate.statement, rejection.detail) for rejection in grounding.rejections
    )
    return WindowReading(key, window.turns[0].number, window.turns[-1].number, grounding.assertions, refused)


def limited_reading(reading: WindowReading, most: int) -> WindowReading:
    """Return a reading with at most this many statements. The others are added to its rejections."""
    surplus = reading.assertions[most:]
    if not surplus:
        return reading
    reason, detail = RejectionReason.TOO_MANY.value, REASON_DETAILS[RejectionReason.TOO_MANY]
    left_out = tuple((reason, assertion.statement, detail) for assertion in surplus)
    return replace(reading, assertions=reading.assertions[:most], rejections=(*left_out, *reading.rejections))


def rejection_counts(readings: Iterable[WindowReading]) -> Counter[str]:
    """Return how many candidates of the windows were rejected, by reason."""
    return Counter(reason for reading in readings for reason, _, _ in reading.rejections)


def _reject_unexamined(candidate: Candidate) -> Rejection:
    turn = min((citation.turn for citation in candidate.evidence), default=None)
    place = f"turn {turn}: " if turn else ""
    return Rejection(
        _NOT_EXAMINED, RejectionReason.TOO_MANY.value, f"{place}{REASON_DETAILS[RejectionReason.TOO_MANY]}"
    )


def _withhold_forgotten(grounding: Grounding, transcript: Transcript, forgotten: ForgottenContent) -> Grounding:
    """Return the grounding without forgotten statements. Each of them becomes a rejection without its words."""
    if forgotten.has_no_tombstones:
        return grounding
    times = {turn.number: turn.said_at for turn in transcript.turns}

    def is_forgotten(candidate: Candidate) -> bool:
        said_at = (times.get(citation.turn) for citation in candidate.evidence)
        last_said_at = max((at for at in said_at if at is not None), default=None)
        return forgotten.is_slot_forgotten(candidate.subject, candidate.attribute, candidate.value, last_said_at)

    blank = Rejection(_BLANK, RejectionReason.FORGOTTEN.value, REASON_DETAILS[RejectionReason.FORGOTTEN])
    assertions = tuple(
        assertion for assertion in grounding.assertions if not forgotten.is_assertion_forgotten(assertion)
    )
    rejections = [blank if is_forgotten(rejection.candidate) else rejection for rejection in grounding.rejections]
    return Grounding(assertions, (*rejections, *[blank] * (len(grounding.assertions) - len(assertions))))
