"""Read a window for what it says: extract, ground, mend once; where it is too long for the model, read it in halves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from afterword import telemetry
from afterword.extractors.candidates import Candidate
from afterword.extractors.errors import AnswerCut, ExtractionError
from afterword.extractors.extractor import Extraction, Extractor, Usage, Window
from afterword.extractors.grounding import FINAL, Grounding
from afterword.extractors.windows import halve
from afterword.telemetry import Stage

Ground = Callable[[Sequence[Candidate]], Grounding]
"""Checks candidates against the session that they are from."""


class Reader:
    """Reads the windows of one session. `usage` is what its calls cost so far, those that failed included, `splits` how
    many windows had to be halved.
    """

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor
        self.usage = Usage()
        self.splits = 0

    async def read(self, window: Window, ground: Ground) -> Grounding:
        """Return what a window gives: what `ground` refuses is shown to the extractor once, then refused for good.

        What is too long, itself or its answer, is read in halves. Raises an `ExtractionError` where no answer was had,
        `AnswerCut` only where a part too small to be halved is still too long.
        """
        try:
            return await self._whole(window, ground)
        except AnswerCut as error:
            cut = error
        halves = halve(window)
        if halves is None:
            first, last = window.turns[0].number, window.turns[-1].number
            raise AnswerCut(f"{cut} (turns {first} to {last} alone are too long already)", cut.usage)
        self.splits += 1
        return _joined([await self.read(half, ground) for half in halves])

    async def _whole(self, window: Window, ground: Ground) -> Grounding:
        found = _grounded(ground, await self._counted(Stage.EXTRACT, self._extractor.extract(window)))
        mendable = [one for one in found.rejections if one.reason not in FINAL]
        if not mendable:
            return found
        mended = _grounded(ground, await self._counted(Stage.REPAIR, self._extractor.repair(window, mendable)))
        return _joined([found, Grounding(mended.assertions, ())])

    async def _counted(self, name: Stage, asked: Awaitable[Extraction]) -> Sequence[Candidate]:
        with telemetry.stage(name):
            try:
                extraction = await asked
            except ExtractionError as error:
                self.usage += error.usage
                raise
            telemetry.note(candidates=len(extraction.candidates))
        self.usage += extraction.usage
        return extraction.candidates


def _grounded(ground: Ground, candidates: Sequence[Candidate]) -> Grounding:
    with telemetry.stage(Stage.GROUND, candidates=len(candidates)):
        found = ground(candidates)
        telemetry.note(assertions=len(found.assertions), refused=len(found.rejections))
    return found


def _joined(parts: Sequence[Grounding]) -> Grounding:
    assertions = {one.id: one for part in parts for one in part.assertions}
    return Grounding(tuple(assertions.values()), tuple(one for part in parts for one in part.rejections))
