"""Reading one window: candidates are extracted, grounded and repaired once; a window that is too long is halved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from afterword import telemetry
from afterword.extractors.answered_windows import AnsweredWindows
from afterword.extractors.candidates import Candidate
from afterword.extractors.errors import AnswerCut, ExtractionError
from afterword.extractors.extractor import Extraction, Extractor, Usage, Window
from afterword.extractors.grounding import FINAL, Grounding
from afterword.extractors.windows import halve
from afterword.telemetry import Stage

Ground = Callable[[Sequence[Candidate]], Grounding]
"""Checks candidates against the session that they are from."""


class WindowReader:
    """Reads the windows of one session.

    `usage` is the cost of all calls so far, failed ones included.
    `named` are the secrets that the model named. A window is read once, also if its secrets are masked afterwards.
    """

    def __init__(self, extractor: Extractor, *, is_masking: bool = True) -> None:
        self._extractor = AnsweredWindows(extractor, is_masking=is_masking)
        self.named = self._extractor.named
        self.usage = Usage()

    @property
    def splits(self) -> int:
        """How many windows had to be halved."""
        return self._extractor.cuts

    async def read(self, window: Window, ground: Ground) -> Grounding:
        """Return the grounded statements of a window. The extractor may repair refused candidates once.

        A window is read in halves if it or its answer is too long for the model. Raises an `ExtractionError` if there
        was no answer, and `AnswerCut` only if a part that cannot be halved is still too long.
        """
        try:
            return await self._read_whole(window, ground)
        except AnswerCut as error:
            cut = error
        halves = halve(window)
        if halves is None:
            first, last = window.turns[0].number, window.turns[-1].number
            raise AnswerCut(f"{cut} (turns {first} to {last} alone are too long already)", cut.usage)
        return _join([await self.read(half, ground) for half in halves])

    async def _read_whole(self, window: Window, ground: Ground) -> Grounding:
        grounding = _run_grounding(ground, await self._candidates(Stage.EXTRACT, self._extractor.extract(window)))
        repairable = [rejection for rejection in grounding.rejections if rejection.reason not in FINAL]
        if not repairable:
            return grounding
        candidates = await self._candidates(Stage.REPAIR, self._extractor.repair(window, repairable))
        return _join([grounding, Grounding(_run_grounding(ground, candidates).assertions, ())])

    async def _candidates(self, stage: Stage, answer: Awaitable[Extraction]) -> Sequence[Candidate]:
        with telemetry.stage(stage):
            try:
                extraction = await answer
            except ExtractionError as error:
                self.usage += error.usage
                raise
            telemetry.note(candidates=len(extraction.candidates))
        self.usage += extraction.usage
        return extraction.candidates


def _run_grounding(ground: Ground, candidates: Sequence[Candidate]) -> Grounding:
    with telemetry.stage(Stage.GROUND, candidates=len(candidates)):
        grounding = ground(candidates)
        telemetry.note(assertions=len(grounding.assertions), refused=len(grounding.rejections))
    return grounding


def _join(parts: Sequence[Grounding]) -> Grounding:
    assertions = {assertion.id: assertion for part in parts for assertion in part.assertions}
    return Grounding(tuple(assertions.values()), tuple(rejection for part in parts for rejection in part.rejections))
