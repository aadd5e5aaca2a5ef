"""An extractor that keeps its answers: a window read again, with its secrets masked, costs no second request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from afterword.extractors.errors import AnswerCut
from afterword.extractors.extractor import Extraction, Extractor, Rejection, Window
from afterword.extractors.named_secrets import NamedSecrets


@dataclass
class _Answered:
    window: Window
    extraction: Extraction | AnswerCut
    repair: Extraction | None = None


class AnsweredWindows:
    """Extracts the windows of one session.

    `named` collects the secrets that the model names in them, unless nothing is to be masked. `cuts` counts the windows
    that were too long for the model.
    """

    def __init__(self, extractor: Extractor, *, is_masking: bool = True) -> None:
        self.named = NamedSecrets()
        self.cuts = 0
        self._extractor, self._is_masking = extractor, is_masking
        self._answered: dict[int, list[_Answered]] = {}

    async def extract(self, window: Window) -> Extraction:
        """Return the answer to the window, or the one that was given before. Raises an `ExtractionError`."""
        known = self._find(window)
        if known is None:
            try:
                extraction: Extraction | AnswerCut = await self._extractor.extract(window)
            except AnswerCut as cut:
                extraction = cut
                self.cuts += 1
            known = _Answered(window, extraction)
            self._answered.setdefault(window.ordinal, []).append(known)
            if isinstance(extraction, AnswerCut):
                raise extraction
            self._add_named(extraction, window)
            return extraction
        if isinstance(known.extraction, AnswerCut):
            raise AnswerCut(str(known.extraction))
        return Extraction(known.extraction.candidates)

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Return the repaired candidates, or those that were given before. Raises an `ExtractionError`."""
        known = self._find(window)
        if known is not None and known.repair is not None:
            return Extraction(known.repair.candidates)
        try:
            extraction = await self._extractor.repair(window, rejections)
        except AnswerCut:
            self.cuts += 1
            raise
        self._add_named(extraction, window)
        if known is not None:
            known.repair = extraction
        return extraction

    def _add_named(self, extraction: Extraction, window: Window) -> None:
        if self._is_masking:
            self.named.add(extraction.secrets, (*window.context, *window.turns))

    def _find(self, window: Window) -> _Answered | None:
        masked = self._masked(window)
        return next(
            (each for each in self._answered.get(window.ordinal, ()) if self._masked(each.window) == masked), None
        )

    def _masked(self, window: Window) -> Window:
        if not len(self.named):
            return window
        turns, context = self.named.masked_turns(window.turns), self.named.masked_turns(window.context)
        return replace(window, turns=turns, context=context)
